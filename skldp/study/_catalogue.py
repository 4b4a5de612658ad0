"""Mechanisms and models by name, for studies, audits and the command line."""

from typing import Any

from skldp._checks import check_choice
from skldp.estimators._bitrand import BitRandTransformer, LatentTransformer, OMETransformer
from skldp.estimators._categorical import CategoricalPrivatizer
from skldp.estimators._label_vectors import LabelLaplaceVector, LabelMatrixRR
from skldp.estimators._labels import LabelLaplace, LabelRR
from skldp.estimators._numeric import NumericPrivatizer
from skldp.estimators._private_discriminant import PrivateDiscriminant
from skldp.estimators._private_linear import PrivateLinearRegression
from skldp.estimators._private_logistic import PrivateLogisticRegression
from skldp.estimators._private_moments import PrivateMoments
from skldp.estimators._random_projection import RandomProjectionPrivatizer
from skldp.estimators._table import TablePrivatizer
from skldp.estimators._targets import TargetPrivatizer
from skldp.estimators._vector import MultivariateLaplacePrivatizer, PrivUnitTransformer
from skldp.mechanisms.categorical._one_hot import CATEGORICAL_MECHANISMS
from skldp.mechanisms.numeric._bounded_features import NUMERIC_MECHANISMS
from skldp.study._table_files import StudyInputError

# Estimator of every name, with its parameters.
Catalogue = dict[str, tuple[type, dict[str, Any]]]

_EXACT = {"calibration": "exact"}
_DELTA = {"gaussian": {"delta": 1e-6}}
FEATURE_MECHANISMS: Catalogue = {
    "bitrand": (BitRandTransformer, {}),
    "bitrand-exact": (BitRandTransformer, _EXACT),
    "bitrand-unbiased": (BitRandTransformer, _EXACT | {"debias": True}),
    "latent": (LatentTransformer, {}),
    "latent-exact": (LatentTransformer, _EXACT),
    "ome": (OMETransformer, {}),
    "ome-exact": (OMETransformer, _EXACT),
    **{
        name.replace("_", "-"): (NumericPrivatizer, {"mechanism": name} | _DELTA.get(name, {}))
        for name in (*NUMERIC_MECHANISMS, "best")
        # A transformer of its own, below.
        if name != "privunit"
    },
    # Directions of rows, from the middle of the bounds; a study of a regression declares a norm.
    "privunit": (PrivUnitTransformer, {}),
    "privunit-projected": (RandomProjectionPrivatizer, {"noise": "privunit", "sensitivity": "orthonormal"}),
    "multivariate-laplace": (MultivariateLaplacePrivatizer, {}),
    "random-projection": (RandomProjectionPrivatizer, {}),
    "random-projection-exact": (RandomProjectionPrivatizer, {"sensitivity": "spectral"}),
}
# Their epsilon is per unit of distance, and plain over a declared radius.
METRIC_MECHANISMS = ("multivariate-laplace", "random-projection", "random-projection-exact")
LABEL_MECHANISMS: Catalogue = {"label-rr": (LabelRR, {}), "label-laplace": (LabelLaplace, {})}
# For each task the models that learn from releases made for them.
PRIVATE_MODELS: dict[str, Catalogue] = {
    "regression": {
        "linear-rounds": (PrivateLinearRegression, {}),
        "linear-once": (PrivateLinearRegression, {"protocol": "once"}),
    },
    "classification": {
        "logistic-rounds": (PrivateLogisticRegression, {}),
        "logistic-once": (PrivateLogisticRegression, {"protocol": "once"}),
        "discriminant": (PrivateDiscriminant, {}),
    },
}
# All that have a guarantee, by the kind of their input.
GUARANTEED: dict[str, Catalogue] = {
    "rows of numbers": FEATURE_MECHANISMS,
    "categories": {
        "best-categories" if name == "best" else name: (CategoricalPrivatizer, {"mechanism": name})
        for name in (*CATEGORICAL_MECHANISMS, "best")
    },
    "tables with a --schema": {"table": (TablePrivatizer, {})},
    "labels": LABEL_MECHANISMS,
    "labels as vectors": {"label-laplace-vector": (LabelLaplaceVector, {})},
    "several labels": {"label-matrix": (LabelMatrixRR, {})},
    "targets": {
        f"target-{name.replace('_', '-')}": (TargetPrivatizer, {"mechanism": name})
        for name in ("bins", "unbiased_bins", "best")
    },
    "regressions": PRIVATE_MODELS["regression"],
    "classifications": PRIVATE_MODELS["classification"],
    "moments": {"moments": (PrivateMoments, {})},
}


def takes_delta(name: str) -> bool:
    """Return whether a named mechanism has a delta to choose."""
    return name in FEATURE_MECHANISMS and FEATURE_MECHANISMS[name][1].get("mechanism") in ("gaussian", "best")


def make_named(name: str, *, bounds: Any = (-1, 1), **options: Any) -> Any:
    """Make the estimator of a name; options that it does not have are left out. Nothing in it is tuned."""
    named = {name: own for catalogue in GUARANTEED.values() for name, own in catalogue.items()}
    check_choice("The mechanism", name, named, StudyInputError)
    estimator_class, fixed = named[name]
    estimator = estimator_class()
    known = estimator.get_params(deep=False)
    options = fixed | {"bounds": bounds} | options
    return estimator.set_params(**{key: value for key, value in options.items() if key in known})
