"""What studies import only where they need it, with an error that names the extra to install."""

from importlib import import_module
from types import ModuleType

__all__ = ["require"]


def require(name: str, *, extra: str = "study") -> ModuleType:
    """Import a module that an extra brings."""
    try:
        return import_module(name)
    except ImportError:
        raise ImportError(f'This needs {name.partition(".")[0]}: pip install "skldp[{extra}]".') from None
