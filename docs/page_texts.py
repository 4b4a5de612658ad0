"""A limit for the words of a guide: its text and the code that it shows, without printed output and hidden code."""

from docutils import nodes
from sphinx.util import logging

logger = logging.getLogger(__name__)

# A page that takes longer to read than a task takes to do is two pages.
MOST_WORDS = 900
LIMITED = ("guide/", "tutorial", "background/not_for")


def setup(app):
    app.connect("doctree-read", limit_words)
    return {"version": "1", "parallel_read_safe": True}


def count_words(doctree):
    """Return the number of words of a page: titles, text, tables and shown code, without printed output."""
    hidden = (nodes.comment, nodes.raw, nodes.math_block, nodes.system_message)
    texts = doctree.findall(nodes.Text)
    shown = (text for text in texts if not any(_is_output(node) or isinstance(node, hidden) for node in _above(text)))
    return sum(len(text.astext().split()) for text in shown)


def limit_words(app, doctree):
    words = count_words(doctree)
    if app.env.docname.startswith(LIMITED) and words > MOST_WORDS:
        logger.warning("%s has %d words; a guide has at most %d.", app.env.docname, words, MOST_WORDS, type="words")


def _is_output(node):
    return isinstance(node, nodes.Element) and "output" in node.get("classes", ())


def _above(node):
    while node is not None:
        yield node
        node = node.parent
