"""What studies import only where they need it, with an error that names the extra to install."""

from importlib import import_module
from types import ModuleType

__all__ = ["require"]


def require(name: str) -> ModuleType:
    """Import a module that the extra ``study`` brings.

    Parameters
    ----------
    name : str
        Such as ``"matplotlib.pyplot"``.

    Returns
    -------
    module

    Raises
    ------
    ImportError
        If it is missing.
    """
    try:
        return import_module(name)
    except ImportError:
        raise ImportError(f'This needs {name.partition(".")[0]}: pip install "skldp[study]".') from None
