"""What an error about data may say: its type, shape, column, position and the rule, and never a value."""

import dis
import re
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["as_numbers", "kind_of", "told", "untold", "where_not_numbers"]

# What scikit-learn and numpy say about data without a value in it. Whatever is not here is taken to hold one, so that
# a message that is new in a later version is not shown before somebody has read it.
_NO_VALUE_IN = re.compile(
    r"Input (\w+ )?contains (NaN|infinity)|Found array with (dim \d|\d+ (sample|feature)\(s\))"
    r"|Found input variables with inconsistent numbers of samples|X has \d+ features, but"
    r"|(Sparse data|A sparse matrix) was passed|(The feature names|Feature names)"
    r"|Expected 2D input, got input with shape|Expected (sequence or array-like, got <class|a 2-dimensional container)"
    r"|Unable to find the number of features from X of type"
    r"|y should be a 1d array, got an array of shape|Unknown label type: [a-z-]+\. Maybe"
    r"|(float\(\)|int\(\)) argument must be|setting an array element with a sequence|invalid type promotion"
    r"|.{0,80}requires y to be passed, but the target y is None|.{0,80}got an unexpected keyword argument"
    r"|dtype='numeric' is not compatible|np\.matrix is not supported|Only sparse matrices with 32-bit"
    r"|sample_weight\.shape|Sample weights must"
    r"|Target is multi\w+ but average|n_splits=\d+ cannot be|Cannot have number of splits"
    r"|multi_class must be in|The 'groups' parameter should not be None"
    # The parameters of an estimator are public. Functions, in small letters, check their data the same way, and put
    # their own name to what an estimator within them says: cross_validate, cross_val_predict.
    r"|The '(?!X'|Y'|y'|y_|labels|sample_|groups')\w+' parameter of ([A-Z]|cross_val|check_scoring )"
)
# What they say with a value behind it, and what is left of it.
_RESHAPE = (
    ".\nReshape your data either using array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) "
    "if it contains a single sample."
)
_VALUE_AFTER = {
    re.compile(r"Expected 2D array, got (1D|scalar) array instead"): _RESHAPE,
    re.compile(r"Complex data not supported"): ".",
    re.compile(r"Singleton array"): " is no collection.",
    re.compile(r"Input should have at least 1 dimension"): ".",
    re.compile(r"Unknown label type"): ".",
    re.compile(r"This solver needs samples of at least 2 classes"): ", but the data contains only one class.",
    re.compile(r"Mix of label input types \(string and number\)"): ".",
    re.compile(r"pos_label"): " must be one of the labels, which are not shown.",
}

_DATES = (np.datetime64, np.timedelta64)
_RAISE = dis.opmap["RAISE_VARARGS"]


@contextmanager
def untold(rule: str, values: Any = None) -> Iterator[None]:
    """Let what other packages raise about data say no more than may be said.

    Messages without values pass, as do those of this package; of all others the class is kept, and the text is the
    rule and the kind of values that it was broken with. No traceback shows what was raised before.

    Parameters
    ----------
    rule : str
        Such as ``"X must be a table of numbers"``.
    values : object, default=None
        What broke it, if that is known.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp._untold import untold
    >>> try:
    ...     with untold("X must hold numbers", ["secret"]):
    ...         np.asarray(["secret"], dtype=float)
    ... except ValueError as error:
    ...     print(error)
    X must hold numbers. Got list of length 1, with str in it, instead.
    """
    try:
        yield
    except Exception as error:
        text = told(error)
        if text == str(error):
            raise error from None
        if text is None:
            text = rule + ("." if values is None else f". Got {kind_of(values)}{where_not_numbers(values)} instead.")
        raise _plain_class(error)(text) from None


def told(error: Exception) -> str | None:
    """What of an error's text may be shown, or None.

    Parameters
    ----------
    error : Exception

    Returns
    -------
    str or None
    """
    text = str(error)
    if _raised_here(error) or isinstance(error, ImportError | MemoryError) or "NotFitted" in type(error).__name__:
        return text
    if _NO_VALUE_IN.match(text):
        return text
    starts = ((pattern.match(text), rest) for pattern, rest in _VALUE_AFTER.items())
    return next((start.group() + rest for start, rest in starts if start), None)


def kind_of(values: Any) -> str:
    """Describe data by type and shape.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp._untold import kind_of
    >>> kind_of(np.array([["secret"]])), kind_of([1, 2])
    ('ndarray of str_ with shape (1, 1)', 'list of length 2')
    """
    name, dtype, shape = (
        type(values).__name__,
        getattr(values, "dtype", None),
        getattr(values, "shape", None),
    )
    if isinstance(dtype, np.dtype):
        # The name of a dtype of strings would tell the length of the longest one.
        name += f" of {dtype.type.__name__}"
    if isinstance(shape, tuple):
        return f"{name} with shape {shape}" if shape else f"{name} without dimension"
    return f"{name} of length {len(values)}" if isinstance(values, list | tuple) else name


def where_not_numbers(values: Any) -> str:
    """Say in which column of a table, or of which types, there is what is no number; empty where nothing is found."""
    try:
        if hasattr(values, "columns"):
            table = values.iloc if hasattr(values, "iloc") else values
            columns = [(f"column {str(name)!r}", table[:, j].to_list()) for j, name in enumerate(values.columns)]
        else:
            array = np.asarray(values, dtype=object)
            table = array.T if array.ndim == 2 else [array.reshape(-1)]
            columns = [(f"column {j}" if array.ndim == 2 else "it", part.tolist()) for j, part in enumerate(table)]
    except Exception:
        # What cannot be looked at is described by its type alone.
        return ""
    for place, column in columns:
        strange = sorted({type(value).__name__ for value in column if not isinstance(value, Real)})
        if strange:
            return f", with {', '.join(strange[:3])} in {place},"
    return ""


def as_numbers(values: npt.ArrayLike, name: str = "values", dtype: npt.DTypeLike = np.float64) -> np.ndarray:
    """Give values as an array of numbers, or say that they are none without showing one.

    Parameters
    ----------
    values : array-like
    name : str, default="values"
        How the error calls them.
    dtype : float dtype, default=float64

    Raises
    ------
    ValueError or TypeError
        If something in them is no real number.

    Examples
    --------
    >>> from skldp._untold import as_numbers
    >>> as_numbers([1, 2])
    array([1., 2.])
    """
    if isinstance(values, np.ndarray) and values.dtype == dtype:
        return values
    with untold(f"{name} must be numbers", values):
        array = np.asarray(values)
        # numpy turns dates into their counts of whatever unit they have, also where they are objects.
        dated = array.dtype.kind == "O" and any(isinstance(one, _DATES) for one in array.reshape(-1).tolist())
        if dated or array.dtype.kind in "cmM":
            raise ValueError(f"{name} must be real numbers. Got {kind_of(array)} instead.")
        return array.astype(dtype, copy=False)


def _raised_here(error: Exception) -> bool:
    """Whether a raise statement of this package made it, whose own messages keep the rule."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or trace.tb_frame.f_globals.get("__name__", "").partition(".")[0] != "skldp":
        return False
    # An error of numpy's compiled code has our line as its last one too, but no raise statement there.
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == _RAISE


def _plain_class(error: Exception) -> type[Exception]:
    """The built-in class of an error, which is made from a text."""
    plain = (TypeError, AttributeError, KeyError, IndexError, RuntimeError)
    return next((one for one in plain if isinstance(error, one)), ValueError)
