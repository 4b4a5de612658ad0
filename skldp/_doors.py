"""Doors that import a name when somebody asks for it, so that a device that only releases waits for nothing else."""

import importlib
import sys
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

__all__ = ["door"]


def door(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the ``__getattr__`` and ``__dir__`` of a package, whose names are those that its stub imports.

    The stub beside the package, ``__init__.pyi``, says for type checkers and for this function alike where each name
    lives. It is read when the first name is asked for.

    Parameters
    ----------
    package : str
        Its ``__name__``.

    Returns
    -------
    getattr, dir : callable

    Examples
    --------
    >>> from skldp._doors import door
    >>> find, names = door("skldp")
    >>> find("LabelRR").__name__, "LabelRR" in names()
    ('LabelRR', True)
    """

    @cache
    def homes() -> dict[str, str]:
        # Not at the top: a device comes through this door and asks it for nothing.
        import ast
        import pkgutil

        stub = ast.parse(pkgutil.get_data(package, "__init__.pyi") or b"")
        return {
            alias.name: node.module
            for node in stub.body
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        }

    def find(name: str) -> Any:
        own = sys.modules[package]
        if name == "__all__":
            value: Any = sorted(homes())
        # What Python and its tools ask of every module is no name of ours.
        elif name.startswith("__"):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        elif name in homes():
            value = getattr(importlib.import_module(homes()[name]), name)
        elif not name.startswith("_") and find_spec(f"{package}.{name}"):
            return importlib.import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(own, name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes()})

    return find, names
