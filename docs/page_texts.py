"""Word counts and reading ease of every page, printed at the end of a build, and a limit for the guides.

Words of a page are those of its text and of the code that it shows; printed output and hidden code do not count.
Reading ease is Flesch's (1948), 206.835 - 1.015 words a sentence - 84.6 syllables a word: plain English has 60 to 70,
an insurance policy 10 to 30. A name in code counts as one syllable, whatever its length.
"""

import re

from docutils import nodes
from sphinx.util import logging

logger = logging.getLogger(__name__)

# A page that takes longer to read than a task takes to do is two pages.
MOST_WORDS = 900
LIMITED = ("guide/", "tutorial", "background/not_for")
NOT_WRITTEN_BY_HAND = ("reference/generated/", "auto_examples/")


def setup(app):
    app.connect("build-finished", report)
    return {"version": "1", "parallel_read_safe": True}


def count_syllables(word):
    """Estimate the syllables of an English word: its groups of vowels, without a silent e at the end."""
    word = re.sub("[^a-z]", "", word.lower())
    groups = len(re.findall("[aeiouy]+", word))
    silent = word.endswith("e") and not word.endswith(("le", "ee")) and groups > 1
    return max(1, groups - silent)


def reading_ease(sentences):
    """Return Flesch's reading ease of sentences, each a list of words."""
    words = [word for sentence in sentences for word in sentence]
    if not words:
        return float("nan")
    return 206.835 - 1.015 * len(words) / len(sentences) - 84.6 * sum(map(count_syllables, words)) / len(words)


def sentences_of(doctree):
    """Return the sentences of a page's paragraphs and captions, each a list of words."""
    found = []
    for block in doctree.findall(lambda node: isinstance(node, nodes.paragraph | nodes.caption | nodes.term)):
        text = "".join("x" if _is_code(node.parent) else node.astext() for node in block.findall(nodes.Text))
        for sentence in re.split(r"(?<=[.!?:;])\s+", text):
            words = re.findall(r"[A-Za-z][A-Za-z'-]*|\d[\d.,]*", sentence)
            if words:
                found.append(words)
    return found


def count_words(doctree):
    """Return the number of words of a page: titles, text, tables and shown code, without printed output."""
    hidden = (nodes.comment, nodes.raw, nodes.math_block, nodes.system_message)
    texts = doctree.findall(nodes.Text)
    shown = (text for text in texts if not any(_is_output(node) or isinstance(node, hidden) for node in _above(text)))
    return sum(len(text.astext().split()) for text in shown)


def report(app, exception):
    """Print the counts; warn of a guide that is too long, which fails a build with ``-W``."""
    if exception or app.builder.format != "html":
        return
    print(f"{'page':36} {'words':>7} {'reading ease':>13}")
    total = others = 0
    for page in sorted(app.env.found_docs):
        doctree = app.env.get_doctree(page)
        words = count_words(doctree)
        if page.startswith(NOT_WRITTEN_BY_HAND):
            others += words
            continue
        total += words
        print(f"{page:36} {words:7,} {reading_ease(sentences_of(doctree)):13.0f}")
        if page.startswith(LIMITED) and words > MOST_WORDS:
            logger.warning("%s has %d words; a guide has at most %d.", page, words, MOST_WORDS, type="words")
    print(f"{'together':36} {total:7,}")
    print(f"{'generated reference and examples':36} {others:7,}")


def _is_code(node):
    return isinstance(node, nodes.literal | nodes.math) or "xref" in node.get("classes", ())


def _is_output(node):
    return isinstance(node, nodes.Element) and "output" in node.get("classes", ())


def _above(node):
    while node is not None:
        yield node
        node = node.parent
