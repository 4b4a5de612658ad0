"""Lazy import of public names, so that a device imports only what it needs."""

import importlib
import sys
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any


def lazy_exports(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the ``__getattr__`` and ``__dir__`` of a package from the imports of its stub, ``__init__.pyi``."""

    @cache
    def modules() -> dict[str, str]:
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
            value: Any = sorted(modules())
        # Dunder names are looked up by tools; do not resolve them lazily.
        elif name.startswith("__"):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        elif name in modules():
            value = getattr(importlib.import_module(modules()[name]), name)
        elif not name.startswith("_") and find_spec(f"{package}.{name}"):
            return importlib.import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(own, name, value)
        return value

    def names() -> list[str]:
        dunders = {name for name in vars(sys.modules[package]) if name.startswith("__")}
        return sorted({*dunders, *modules()})

    return find, names
