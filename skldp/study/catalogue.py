"""The mechanisms by the names that the command line and the studies call them."""

from skldp.estimators.bitrand import BitRandTransformer, LatentTransformer, OMETransformer
from skldp.estimators.labels import LabelLaplace, LabelRR
from skldp.estimators.numeric import NumericPrivatizer
from skldp.study.datasets import StudyInputError

__all__ = ["FEATURE_MECHANISMS", "LABEL_MECHANISMS", "feature_mechanism", "label_mechanism"]

FEATURE_MECHANISMS: dict[str, tuple[type, dict]] = {
    "bitrand": (BitRandTransformer, {}),
    "bitrand-exact": (BitRandTransformer, {"calibration": "exact"}),
    "bitrand-unbiased": (BitRandTransformer, {"calibration": "exact", "debias": True}),
    "latent": (LatentTransformer, {}),
    "latent-exact": (LatentTransformer, {"calibration": "exact"}),
    "ome": (OMETransformer, {}),
    "ome-exact": (OMETransformer, {"calibration": "exact"}),
    "duchi": (NumericPrivatizer, {"mechanism": "duchi"}),
    "duchi-vector": (NumericPrivatizer, {"mechanism": "duchi_vector"}),
    "three-outputs": (NumericPrivatizer, {"mechanism": "three_outputs"}),
    "piecewise": (NumericPrivatizer, {"mechanism": "piecewise"}),
    "hybrid": (NumericPrivatizer, {"mechanism": "hybrid"}),
    "hybrid-tp": (NumericPrivatizer, {"mechanism": "hybrid_tp"}),
    "laplace": (NumericPrivatizer, {"mechanism": "laplace"}),
    "gaussian": (NumericPrivatizer, {"mechanism": "gaussian", "delta": 1e-6}),
    "best": (NumericPrivatizer, {"mechanism": "best"}),
}
LABEL_MECHANISMS: dict[str, tuple[type, dict]] = {
    "label-rr": (LabelRR, {}),
    "label-laplace": (LabelLaplace, {}),
}


def feature_mechanism(name, *, epsilon=1.0, bounds=(-1, 1), transform_noise=True, **options):
    """Make the transformer of a named mechanism.

    Parameters
    ----------
    name : str
        One of ``FEATURE_MECHANISMS``.
    epsilon : float, default=1.0
    bounds : (low, high), default=(-1, 1)
    transform_noise : bool, default=True
    **options : dict
        Other parameters; those that the mechanism does not have are left out.

    Returns
    -------
    transformer

    Raises
    ------
    StudyInputError
        If there is no such mechanism.

    Examples
    --------
    >>> from skldp.study.catalogue import feature_mechanism
    >>> feature_mechanism("bitrand-exact", epsilon=4.0, n_bits=8).n_bits
    8
    """
    shared = {"epsilon": epsilon, "bounds": bounds, "transform_noise": transform_noise}
    return _make(FEATURE_MECHANISMS, name, shared | options)


def label_mechanism(name, *, epsilon=1.0, classes=None, **options):
    """Make the label mechanism of a name.

    Parameters
    ----------
    name : str
        One of ``LABEL_MECHANISMS``.
    epsilon : float, default=1.0
    classes : array-like, default=None
    **options : dict
        Other parameters; those that the mechanism does not have are left out.

    Returns
    -------
    estimator

    Raises
    ------
    StudyInputError
        If there is no such mechanism.

    Examples
    --------
    >>> from skldp.study.catalogue import label_mechanism
    >>> label_mechanism("label-rr", epsilon=2.0, classes=[0, 1])
    LabelRR(classes=[0, 1], epsilon=2.0)
    """
    return _make(LABEL_MECHANISMS, name, {"epsilon": epsilon, "classes": classes} | options)


def _make(catalogue, name, options):
    if name not in catalogue:
        raise StudyInputError(f"The mechanism must be one of {', '.join(catalogue)}. Got {name!r} instead.")
    estimator_class, fixed = catalogue[name]
    estimator = estimator_class()
    known = estimator.get_params(deep=False)
    return estimator.set_params(**{key: value for key, value in (fixed | options).items() if key in known})
