"""The public packages of skldp, and the estimators that they export."""

import importlib
import inspect

from sklearn.base import BaseEstimator

LAZY = tuple(
    importlib.import_module(name)
    for name in (
        "skldp",
        "skldp.mechanisms",
        "skldp.accounting",
        "skldp.learning",
        "skldp.study",
        "skldp.client",
        "skldp.flower",
        "skldp.papers",
    )
)
PUBLIC = (*LAZY, importlib.import_module("skldp.exceptions"))
ESTIMATORS = {
    name: value
    for door in (importlib.import_module("skldp"), importlib.import_module("skldp.papers"))
    for name in door.__all__
    if inspect.isclass(value := getattr(door, name)) and issubclass(value, BaseEstimator)
}
