"""Which of scikit-learn's checks a private estimator must fail, and why."""

_OWN_NOISE = "each row gets its own noise, so a row's release depends on its place in the call"


def expected_failures(estimator):
    """The strict expected failures of a seeded transformer of X; an unseeded one is tagged non-deterministic."""
    if getattr(estimator, "random_state", None) is None:
        return {}
    return {
        "check_methods_sample_order_invariance": _OWN_NOISE,
        "check_methods_subset_invariance": _OWN_NOISE,
    }
