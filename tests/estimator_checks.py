"""Which of scikit-learn's checks a private estimator must fail, and why."""

_OWN_NOISE = "each row gets its own noise, so a row's release depends on its place in the call"
_ZERO_ROW = "the check's data hold a row of zeros, which has no direction to release"


def expected_failures(estimator):
    """The strict expected failures of a seeded transformer of X; an unseeded one is tagged non-deterministic."""
    failures = {"check_estimators_dtypes": _ZERO_ROW} if getattr(estimator, "norm", None) == "unit" else {}
    if getattr(estimator, "random_state", None) is None:
        return failures
    return failures | {
        "check_methods_sample_order_invariance": _OWN_NOISE,
        "check_methods_subset_invariance": _OWN_NOISE,
    }
