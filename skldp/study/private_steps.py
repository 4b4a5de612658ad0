"""What the single steps of a fitted pipeline guarantee, and what they state together."""

from sklearn.pipeline import Pipeline

from skldp.estimators.composition import privacy_guarantee
from skldp.exceptions import ChangedAfterFitError

__all__ = ["has_seed", "private_steps", "stated_together"]


def private_steps(fitted):
    """Give the private steps of a Pipeline, or the whole of anything else, each with its guarantee.

    Parameters
    ----------
    fitted : fitted estimator

    Returns
    -------
    tuple of (str, PrivacyGuarantee)

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skldp import BitRandTransformer
    >>> from skldp.study.private_steps import private_steps
    >>> pipeline = make_pipeline(BitRandTransformer(calibration="exact"), StandardScaler())
    >>> [name for name, _ in private_steps(pipeline.fit([[0.5], [-0.5]]))]
    ['bitrandtransformer']
    """
    if not isinstance(fitted, Pipeline):
        return ((type(fitted).__name__, privacy_guarantee(fitted)),)
    found = []
    for name, step in fitted.steps:
        try:
            found.append((name, privacy_guarantee(step)))
        except ChangedAfterFitError:
            raise
        except (ValueError, TypeError):
            # Nothing in it is private: a scaler, or "passthrough".
            continue
    return tuple(found)


def has_seed(estimator):
    """Whether the noise of any part of an estimator, however deep, comes from a seed.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from skldp import NumericPrivatizer
    >>> from skldp.study.private_steps import has_seed
    >>> has_seed(make_pipeline(NumericPrivatizer())), has_seed(make_pipeline(NumericPrivatizer(seed=1)))
    (False, True)
    """
    return any(value is not None for name, value in estimator.get_params().items() if name.split("__")[-1] == "seed")


def stated_together(steps):
    """Add up what the steps state, over the declared diameter where one states it per unit of distance.

    Parameters
    ----------
    steps : tuple of (str, PrivacyGuarantee)

    Returns
    -------
    float or None
        None where a step states nothing.

    Examples
    --------
    >>> from skldp import PrivacyGuarantee
    >>> from skldp.study.private_steps import stated_together
    >>> vector = PrivacyGuarantee(0.5, unit="distance", stated=0.5, diameter=4.0)
    >>> stated_together((("vector", vector), ("label", PrivacyGuarantee(1.0, unit="label", stated=1.0))))
    3.0
    """
    stated = [_stated_plainly(guarantee) for _, guarantee in steps]
    return None if None in stated else sum(stated)


def _stated_plainly(guarantee):
    if guarantee.unit != "distance" or guarantee.stated is None:
        return guarantee.stated
    return None if guarantee.diameter is None else guarantee.stated * guarantee.diameter
