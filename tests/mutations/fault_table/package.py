"""Faults of what all floors share."""

from mutations.fault_table._mutation import Mutation

__all__ = ["MUTATIONS"]

MUTATIONS = [
    Mutation("_arrays.py", "if not dated and array", "if array", "test_arrays.py"),
    Mutation("_arrays.py", "except (ValueError, TypeError, OverflowError):", "except TypeError:", "test_arrays.py"),
    Mutation("cli/__init__.py", '(last.line or "").startswith("raise ") and ', "", "cli/test_command_messages.py"),
    Mutation("_tables.py", "{in_html(text)}", "{text}", "mechanisms/test_guarantee.py"),
    # Texts of any sender: invisible characters are refused in documents, and escaped where they are printed.
    Mutation("_texts.py", 'or category in ("Zl", "Zp")', "", "test_texts.py"),
    Mutation("_texts.py", 'category[0] == "C" and', 'category == "Cc" and', "test_texts.py"),
    Mutation("_texts.py", r'before > "\x7f" and', "", "test_texts.py"),
    Mutation("_texts.py", 'unicodedata.category(before)[0] in "LMS"', "True", "test_texts.py"),
    Mutation("_tables.py", "html.escape(escaped(text))", "html.escape(text)", "test_texts.py"),
    Mutation("client/_schema.py", "if hidden is not None:", "if False:", "test_texts.py"),
    Mutation("client/_prefixes.py", "if not all(map(is_visible, self.symbols)):", "if False:", "test_texts.py"),
    Mutation("learning/_survey_estimates.py", "([escaped(label), *", "([label, *", "test_texts.py"),
    Mutation("cli/_options.py", "    text = escaped(text)\n", "", "cli/test_policies.py"),
    Mutation(
        "cli/__init__.py", "{escaped(' '.join(message.split()))}", "{' '.join(message.split())}", "cli/test_policies.py"
    ),
    Mutation(
        "cli/_policies.py",
        'console.print(_cells(["purpose"], [[policy.purpose]]))',
        "console.print(policy.purpose)",
        "cli/test_policies.py",
    ),
]
