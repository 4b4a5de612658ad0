"""The mechanisms by the names that the command line and the studies call them."""

from typing import Any

from sklearn.base import clone

from skldp.estimators._bitrand import BitRandTransformer, LatentTransformer, OMETransformer
from skldp.estimators._encoded_table import TABLE_MECHANISMS
from skldp.estimators._labels import LabelLaplace, LabelRR
from skldp.estimators._numeric import NumericPrivatizer
from skldp.estimators._private_discriminant import PrivateDiscriminant
from skldp.estimators._private_linear import PrivateLinearRegression
from skldp.estimators._private_logistic import PrivateLogisticRegression
from skldp.estimators._random_projection import RandomProjectionPrivatizer
from skldp.estimators._vector import MultivariateLaplacePrivatizer, PrivUnitTransformer
from skldp.study._datasets import StudyInputError
from skldp.study._rivals import OneGradientClassifier, OneGradientRegressor

__all__ = [
    "FAMILIES",
    "FEATURE_MECHANISMS",
    "LABEL_MECHANISMS",
    "METRIC_MECHANISMS",
    "PRIVATE_MODELS",
    "epsilon_of",
    "family_of",
    "feature_mechanism",
    "label_mechanism",
    "private_model",
    "takes_delta",
]

#: The transformer of every named mechanism, with the parameters that make it what its name says.
FEATURE_MECHANISMS: dict[str, tuple[type, dict[str, Any]]] = {
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
    "piecewise-sub": (NumericPrivatizer, {"mechanism": "piecewise_sub"}),
    "piecewise-opt": (NumericPrivatizer, {"mechanism": "piecewise_opt"}),
    "square-wave": (NumericPrivatizer, {"mechanism": "square_wave"}),
    "hybrid": (NumericPrivatizer, {"mechanism": "hybrid"}),
    "hybrid-tp": (NumericPrivatizer, {"mechanism": "hybrid_tp"}),
    "ldp-fl": (NumericPrivatizer, {"mechanism": "ldp_fl"}),
    "laplace": (NumericPrivatizer, {"mechanism": "laplace"}),
    "gaussian": (NumericPrivatizer, {"mechanism": "gaussian", "delta": 1e-6}),
    "best": (NumericPrivatizer, {"mechanism": "best"}),
    # Directions of rows, from the middle of the bounds; a study of a regression declares a norm.
    "privunit": (PrivUnitTransformer, {}),
    "privunit-projected": (RandomProjectionPrivatizer, {"noise": "privunit", "sensitivity": "orthonormal"}),
    # The epsilon of these two is per unit of distance, and plain over a declared radius.
    "multivariate-laplace": (MultivariateLaplacePrivatizer, {}),
    # The published sensitivity fails with a probability over the matrix; this one holds for every two vectors.
    "random-projection": (RandomProjectionPrivatizer, {"sensitivity": "spectral"}),
}
METRIC_MECHANISMS = ("multivariate-laplace", "random-projection")
FAMILIES = ("made for the model", "bit by bit", "value by value", "whole vector")
# Each person releases one gradient, once: what is known as LDP-SGD.
_GRADIENTS = {
    "sgd-duchi": NumericPrivatizer(mechanism="duchi"),
    "sgd-piecewise": NumericPrivatizer(mechanism="piecewise"),
    "sgd-hybrid": NumericPrivatizer(mechanism="hybrid"),
    "sgd-privunit": PrivUnitTransformer(norm=1.0),
}
#: For each task the models that are learnt from releases made for them, with the parameters of each.
PRIVATE_MODELS: dict[str, dict[str, tuple[type, dict[str, Any]]]] = {
    "regression": {
        "linear-rounds": (PrivateLinearRegression, {}),
        "linear-once": (PrivateLinearRegression, {"protocol": "once"}),
        **{name: (OneGradientRegressor, {"mechanism": one}) for name, one in _GRADIENTS.items()},
    },
    "classification": {
        "logistic-rounds": (PrivateLogisticRegression, {}),
        "logistic-once": (PrivateLogisticRegression, {"protocol": "once"}),
        "discriminant": (PrivateDiscriminant, {}),
        **{name: (OneGradientClassifier, {"mechanism": one}) for name, one in _GRADIENTS.items()},
    },
}
#: The label mechanism of every name, with the parameters that make it what its name says.
LABEL_MECHANISMS: dict[str, tuple[type, dict[str, Any]]] = {
    "label-rr": (LabelRR, {}),
    "label-laplace": (LabelLaplace, {}),
}


def family_of(name: str) -> str:
    """What is released: what a model asks for, the bits of values, one value after the other, or the whole vector.

    Examples
    --------
    >>> from skldp.study._catalogue import family_of
    >>> family_of("piecewise"), family_of("duchi-vector")
    ('value by value', 'whole vector')
    """
    if any(name in models for models in PRIVATE_MODELS.values()):
        return FAMILIES[0]
    if name in TABLE_MECHANISMS:
        return FAMILIES[2]
    if name not in FEATURE_MECHANISMS:
        return ""
    estimator_class, fixed = FEATURE_MECHANISMS[name]
    if estimator_class in (BitRandTransformer, LatentTransformer, OMETransformer):
        return FAMILIES[1]
    one_by_one = estimator_class is NumericPrivatizer and fixed["mechanism"] not in ("duchi_vector", "gaussian")
    return FAMILIES[2] if one_by_one else FAMILIES[3]


def takes_delta(name: str) -> bool:
    """Whether the guarantee of a named mechanism may have a delta that one chooses.

    Examples
    --------
    >>> from skldp.study._catalogue import takes_delta
    >>> takes_delta("gaussian"), takes_delta("best"), takes_delta("duchi")
    (True, True, False)
    """
    return name in FEATURE_MECHANISMS and FEATURE_MECHANISMS[name][1].get("mechanism") in ("gaussian", "best")


def feature_mechanism(
    name: str, *, epsilon: float = 1.0, bounds: Any = (-1, 1), transform_noise: bool = True, **options: Any
) -> Any:
    """Make the transformer of a named mechanism.

    Nothing in it is tuned: the choices that a mechanism leaves open are made from epsilon, the bounds and the number
    of features alone.

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
    >>> from skldp.study import feature_mechanism
    >>> feature_mechanism("bitrand-exact", epsilon=4.0, n_bits=8).n_bits
    8
    """
    shared = {"epsilon": epsilon, "bounds": bounds, "transform_noise": transform_noise}
    return _make(FEATURE_MECHANISMS, name, shared | options)


def label_mechanism(name: str, *, epsilon: float = 1.0, classes: Any = None, **options: Any) -> Any:
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
    >>> from skldp.study import label_mechanism
    >>> label_mechanism("label-rr", epsilon=2.0, classes=[0, 1])
    LabelRR(classes=[0, 1], epsilon=2.0)
    """
    return _make(LABEL_MECHANISMS, name, {"epsilon": epsilon, "classes": classes} | options)


def private_model(
    name: str, *, epsilon: float = 1.0, bounds: Any = (-1, 1), target_bounds: Any = None, classes: Any = None
) -> Any:
    """Make the model of a name, which is learnt from one release a person that is made for it.

    Parameters
    ----------
    name : str
        One of ``PRIVATE_MODELS["regression"]`` or ``PRIVATE_MODELS["classification"]``.
    epsilon : float, default=1.0
        Of the record with its target.
    bounds : (low, high), default=(-1, 1)
    target_bounds : (low, high), default=None
        For a regression; then there are no `classes`.
    classes : array-like, default=None
        For a classification.

    Returns
    -------
    estimator
        With a parameter `epsilon`, or ``mechanism__epsilon``.

    Raises
    ------
    StudyInputError
        If there is no such model.

    Examples
    --------
    >>> from skldp.study import private_model
    >>> private_model("linear-once", epsilon=2.0, target_bounds=(0, 30))
    PrivateLinearRegression(epsilon=2.0, protocol='once', target_bounds=(0, 30))
    """
    task, of_target = (
        ("classification", {"classes": classes})
        if target_bounds is None
        else ("regression", {"target_bounds": target_bounds})
    )
    known = PRIVATE_MODELS[task]
    if name not in known:
        raise StudyInputError(f"The model of a {task} must be one of {', '.join(known)}. Got {name!r} instead.")
    model_class, fixed = known[name]
    given = {key: clone(value) if hasattr(value, "get_params") else value for key, value in fixed.items()}
    model = model_class(**given, bounds=bounds, **of_target)
    return model.set_params(**{epsilon_of(model): epsilon})


def epsilon_of(model: Any) -> str:
    """The name of a model's parameter that takes the epsilon."""
    return "epsilon" if "epsilon" in model.get_params(deep=False) else "mechanism__epsilon"


def _make(catalogue: dict[str, tuple[type, dict[str, Any]]], name: str, options: dict[str, Any]) -> Any:
    if name not in catalogue:
        raise StudyInputError(f"The mechanism must be one of {', '.join(catalogue)}. Got {name!r} instead.")
    estimator_class, fixed = catalogue[name]
    estimator = estimator_class()
    known = estimator.get_params(deep=False)
    return estimator.set_params(**{key: value for key, value in (fixed | options).items() if key in known})
