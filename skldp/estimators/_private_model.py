"""private_model: a pipeline for a declared table that learns under local privacy."""

from collections.abc import Mapping
from typing import Any

from sklearn.pipeline import Pipeline

from skldp._checks import check_choice, check_epsilon, did_you_mean
from skldp.estimators._column_encoder import ColumnEncoder
from skldp.estimators._declared_table import DeclaredTable
from skldp.estimators._private_discriminant import PrivateDiscriminant
from skldp.estimators._private_linear import PrivateLinearRegression
from skldp.estimators._private_logistic import PrivateLogisticRegression

_MODELS = {
    "linear": PrivateLinearRegression,
    "logistic": PrivateLogisticRegression,
    "discriminant": PrivateDiscriminant,
}
_FROM_SCHEMA = ("bounds", "target_bounds", "classes")


def private_model(
    schema: Mapping[Any, Any] | str, target: Any, epsilon: float = 1.0, *, model: str = "auto", **parameters: Any
) -> Pipeline:
    """Make a pipeline that learns to predict a declared column under local differential privacy.

    Each row is a person, who releases one vector once, at the exact epsilon of their features and target together.

    Parameters
    ----------
    schema : dict by column or JSON text
        Domains of the columns, from public knowledge, as for :class:`TablePrivatizer`. All of them but `target` are
        features. Other columns of a table are ignored.
    target : str, (low, high) or list of classes
        Name of the column to predict, or the domain of a target that `schema` does not have.
    epsilon : float, default=1.0
        Budget (natural log) of one record, the target included.
    model : {"auto", "linear", "logistic", "discriminant"}, default="auto"
        :class:`PrivateLinearRegression`, :class:`PrivateLogisticRegression` or :class:`PrivateDiscriminant`. "auto"
        takes the first for numbers and the second for classes.
    **parameters
        Other parameters of the model, such as ``protocol="once"``, ``inference=True`` or `seed`.

    Returns
    -------
    pipeline : sklearn.pipeline.Pipeline
        Unfitted steps ``"encoder"``, a :class:`ColumnEncoder` that learns nothing, and ``"model"``. It is fitted to a
        frame, with or without the target, and to the values of the target: ``fit(frame, frame["pay"])``. A search
        varies ``"model__epsilon"``.

    Raises
    ------
    ValueError
        If `target` is not declared, its domain does not fit the model, or a parameter is not as above.

    See Also
    --------
    privacy_guarantee : Exact epsilon of the fitted pipeline.
    skldp.study.recommend : Predicted loss of each model for a number of people.

    Notes
    -----
    Declare bounds narrowly and in advance, and ``"scale": "log"`` for a skewed feature. A skewed target is predicted by
    its logarithm: ``fit(frame, np.log(frame["pay"]))``, with ``target=(log_low, log_high)``. With ``inference=True``
    the encoder leaves out the first category of each column, so that the coefficients are determined.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skldp import private_model, privacy_guarantee
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({"age": rng.uniform(18, 65, 20_000), "shift": rng.choice(["day", "night"], 20_000)})
    >>> people["pay"] = 1 + people["age"] / 20 + (people["shift"] == "night") + rng.normal(0, 0.4, 20_000)
    >>> schema = {"age": (18, 65), "shift": ["day", "night"], "pay": (0, 8)}
    >>> model = private_model(schema, target="pay", epsilon=2.0).fit(people, people["pay"])
    >>> model.score(people, people["pay"]) > 0.6, round(privacy_guarantee(model).epsilon, 6)
    (True, 2.0)
    """
    check_choice("model", model, ("auto", *_MODELS))
    check_epsilon(epsilon)
    if target is None:
        raise ValueError("target must be a column of the schema, or its domain; got None.")
    table = DeclaredTable.of(schema, target, of_classes=model in ("logistic", "discriminant"))
    if model == "auto":
        model = "logistic" if table.target is not None and table.target.values is not None else "linear"
    return model_of(table, epsilon, model, **parameters)


def model_of(table: DeclaredTable, epsilon: float, model: str, **parameters: Any) -> Pipeline:
    """Return the pipeline of :func:`private_model` for a declared table with its target."""
    kind, target = _MODELS[model], table.target
    own = [name for name in kind().get_params() if name not in ("epsilon", *_FROM_SCHEMA)]
    for name in parameters:
        if name not in own:
            hint = " The schema sets it." if name in _FROM_SCHEMA else did_you_mean(name, own)
            raise ValueError(f"parameters must be other ones of {kind.__name__}; got {name!r}.{hint}")
    if model == "linear":
        if target is None or target.has_codes or target.is_date or target.scale != "linear":
            raise ValueError(
                "The target of a regression must be numbers on a linear scale; got categories, dates or a log scale."
            )
        domain: dict[str, Any] = {"target_bounds": target.ends}
    else:
        classes = target.values if target else None
        if classes is None or len(classes) < 2 or None in classes:
            raise ValueError(
                "The target of a classification must be a list of at least two declared classes, without missing ones."
            )
        domain = {"classes": list(classes)}
    encoder = ColumnEncoder(table.columns, drop="first" if parameters.get("inference") else None)
    return Pipeline([("encoder", encoder), ("model", kind(epsilon, **domain, **parameters))])
