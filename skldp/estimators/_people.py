"""Who the rows of X are: a column or an index of ids, taken out before a model sees the features."""

from numbers import Integral

import numpy as np
from scipy import sparse

__all__ = ["split_ids", "whole_numbers"]

# Every whole number below this is exact in single precision, and none that is rounded to single precision falls below.
_WHOLE_IN_SINGLE = 2.0**24


def split_ids(X, where):
    """Split the table X into what a model sees and the ids of its rows.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_columns)
        A pandas or polars DataFrame where `where` is a name.
    where : None, int or str
        The position of the column of ids, or its name, or in pandas the name of an index level.

    Returns
    -------
    features : array-like
        `X` without the column; `X` itself where the ids are in the index, or there are none.
    ids : iterable or None
        As they are in X; None where it has no such column or index: public rows need none.

    Raises
    ------
    TypeError
        If `where` is a name and X is no DataFrame.
    ValueError
        If a position is outside of X, or a name is no single column or index.
    """
    if where is None:
        return X, None
    if isinstance(where, Integral):
        return _split_position(X, int(where))
    if not hasattr(X, "columns"):
        raise TypeError(
            f"ids={where!r} is the name of a column or an index of a DataFrame. Got a {type(X).__name__} instead."
        )
    names = list(X.columns)
    if names.count(where) > 1:
        raise ValueError(f"ids={where!r} must name one column. Got X with {names.count(where)} columns of that name.")
    levels = list(getattr(getattr(X, "index", None), "names", []))
    if where in names and where in levels:
        raise ValueError(f"ids={where!r} must name a column or an index of X. Got X where it names both.")
    if where in names:
        return _without(X, names.index(where)), X[where]
    return X, X.index.get_level_values(where) if where in levels else None


def whole_numbers(ids):
    """Read ids off an array that can hold nothing but floats; any others are given back.

    Parameters
    ----------
    ids : iterable or None

    Returns
    -------
    iterable or None

    Raises
    ------
    ValueError
        If an array of floats holds anything but whole numbers below 2^24, which all floats hold exactly.
    """
    if not isinstance(ids, np.ndarray) or ids.dtype.kind != "f":
        return ids
    exact = (np.abs(ids) < _WHOLE_IN_SINGLE) & (ids == np.floor(ids))
    if not exact.all():
        raise ValueError(
            "Ids in an array of floats must be whole numbers below 2**24, since larger ones change in single "
            f"precision: use a DataFrame, or pass ids. Got another one at position {int(np.argmin(exact))} (counted "
            "from 0)."
        )
    return ids.astype(np.int64)


def _split_position(X, position):
    if sparse.issparse(X):
        return X, None
    if not hasattr(X, "columns") and not isinstance(X, np.ndarray):
        # Of a list of lists with strings, numpy would make strings of the numbers as well.
        X = np.asarray(X, dtype=object)
    if len(X.shape) != 2:
        return X, None
    if position >= X.shape[1]:
        raise ValueError(f"ids={position} must be the position of a column of X. Got X with {X.shape[1]} columns.")
    if hasattr(X, "iloc"):
        return _without(X, position), X.iloc[:, position]
    return _without(X, position), X[:, position]


def _without(X, position):
    kept = [column for column in range(X.shape[1]) if column != position]
    return X.iloc[:, kept] if hasattr(X, "iloc") else X[:, kept]
