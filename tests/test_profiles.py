from hypothesis import given, settings
from hypothesis import strategies as st

SEEN = []


@given(st.floats(0, 1))
@settings(max_examples=5)
def collect(value):
    SEEN.append(value)


def test_the_default_examples_are_the_same_on_every_run(request):
    if settings.default.derandomize:
        collect()
        first, SEEN[:] = list(SEEN), []
        collect()
        assert first == SEEN
    assert settings.default.derandomize == (
        request.config.getoption("--hypothesis-profile", None) != "fresh"
        and request.config.option.markexpr.strip() != "statistical"
    )
