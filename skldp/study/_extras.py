"""What studies import only where they need it, with an error that names the extra to install."""

from importlib import import_module

__all__ = ["require_pandas", "require_pyplot"]


def require_pandas():
    """Import pandas.

    Returns
    -------
    module

    Raises
    ------
    ImportError
        If it is missing.
    """
    return _require("pandas", "Tables and files need pandas")


def require_pyplot():
    """Import matplotlib.pyplot.

    Returns
    -------
    module

    Raises
    ------
    ImportError
        If it is missing.
    """
    return _require("matplotlib.pyplot", "Drawing needs matplotlib")


def _require(name, need):
    try:
        return import_module(name)
    except ImportError:
        raise ImportError(f'{need}: pip install "skldp[study]".') from None
