"""Hypothesis draws the same examples on every run, except in the long tier, which looks for new ones.

``pytest`` is the same on every run. ``pytest -m statistical`` draws fresh examples for the long tests, and
``pytest --hypothesis-profile fresh`` for all. What either finds is kept as an ``@example`` or a test of its own.
"""

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.register_profile("fresh", derandomize=False, deadline=None, database=None, print_blob=True)
settings.load_profile("fixed")


def pytest_configure(config):
    chosen = config.getoption("--hypothesis-profile", None)
    long = config.option.markexpr.strip() == "statistical"
    settings.load_profile(chosen or ("fresh" if long else "fixed"))
