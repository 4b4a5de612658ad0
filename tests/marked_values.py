"""Values that no text may show, the shapes that they come in, and what a call told of them."""

import contextlib
import io
import linecache
import logging
import os
import struct
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

import skldp

__all__ = ["MARKED_LABELS", "MARKED_ROWS", "NUMBER", "TEXT", "WHOLE", "found_in", "stored_in", "told_by"]

_PACKAGE = str(Path(skldp.__file__).parent) + os.sep

TEXT = "HIV positive"
NUMBER = 987654.25
WHOLE = 3133731337

# What of them would stand in a text, however a number is printed.
_TRACES = ("HIV", "987654", "987,654", "9.876", "9.88e", "31337", "3.1337", "3.133", "3,133,7", "3.13e")
_BYTES = (
    *(TEXT.encode(), TEXT.encode("utf-32-le"), TEXT.encode("utf-16-le")),
    *(struct.pack(form, NUMBER) for form in ("<d", ">d", "<f")),
    *(struct.pack(form, WHOLE) for form in ("<q", ">q", "<d", ">d")),
)


def found_in(text):
    """The traces of marked values in a text."""
    return [trace for trace in _TRACES if trace in text]


def stored_in(data):
    """The marked values in bytes: a pickle, a file."""
    return [value for value in _BYTES if value in data]


def told_by(call, *, ours_alone=False):
    """Collect the text that a call lets out: errors, warnings, logs, output.

    With `ours_alone`, errors that another library raised do not count. Their traceback ends in a file of that library,
    or at our line that called compiled code, which is no raise statement.

    Returns
    -------
    text : str
    result : what the call returned, or None if it raised
    """
    records = io.StringIO()
    handler = logging.StreamHandler(records)
    logging.getLogger().addHandler(handler)
    result, raised = None, []
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(records),
            contextlib.redirect_stderr(records),
        ):
            warnings.simplefilter("always")
            try:
                result = call()
            except Exception as error:
                raised = _all_printed(error)
    finally:
        logging.getLogger().removeHandler(handler)
    told = filter(_is_ours, raised) if ours_alone else raised
    texts = [repr(error) + str(error) + "".join(getattr(error, "__notes__", [])) for error in told]
    texts += [str(warning.message) for warning in caught]
    return "\n".join([*texts, records.getvalue()]), result


def _is_ours(error):
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    # The cause of an error may never have been raised itself.
    file = "" if last is None else last.tb_frame.f_code.co_filename
    return file.startswith(_PACKAGE) and linecache.getline(file, last.tb_lineno).strip().startswith("raise ")


def _all_printed(error):
    """The error and those that a traceback prints above it."""
    chain = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return chain


def _frame(column):
    return pd.DataFrame({"age": [0.25, 0.5, 0.75, 0.5], "result": column, "dose": [0.25, 0.5, 0.75, 0.5]})


def _polars(column):
    polars = __import__("polars")
    return polars.DataFrame({"age": [0.25, 0.5, 0.75, 0.5], "result": column, "dose": [0.25] * 4}, strict=False)


def _array(value, dtype=np.float64):
    rows = np.full((4, 3), 0.5, dtype=dtype)
    rows[2, 1] = value
    return rows


def _sparse(value):
    return sparse.csr_matrix(_array(value))


# Tables of four rows and three columns, or what is none, by a name. Each is made anew: nothing may be kept of it.
MARKED_ROWS = {
    "a list with a string": lambda: [[0.5, TEXT, 0.5]] * 4,
    "a list with a number and nothing": lambda: [[0.5, NUMBER, None]] * 4,
    "an array of objects": lambda: _array(TEXT, object),
    "an array of strings": lambda: np.array([["0.5", TEXT, "0.5"]] * 4),
    "an array of bytes": lambda: np.array([["0.5", TEXT, "0.5"]] * 4, dtype=bytes),
    "an array with NaN": lambda: np.where(np.eye(4, 3), np.nan, NUMBER),
    "an array with infinity": lambda: np.where(np.eye(4, 3), np.inf, NUMBER),
    "an array of large numbers": lambda: _array(NUMBER),
    "single precision": lambda: _array(NUMBER, np.float32),
    "integers": lambda: np.full((4, 3), WHOLE),
    "an integer of many digits": lambda: [[0.5, WHOLE * 10**400, 0.5]] * 4,
    "one dimension": lambda: np.full(4, NUMBER),
    "a list of one dimension": lambda: [NUMBER, WHOLE, 0.5],
    "three dimensions": lambda: np.full((4, 3, 2), NUMBER),
    "a number": lambda: NUMBER,
    "an array of no dimension": lambda: np.array(NUMBER),
    "a string": lambda: TEXT,
    "strings": lambda: [TEXT] * 4,
    "complex numbers": lambda: np.full((4, 3), NUMBER + 1j),
    "complex objects": lambda: _array(NUMBER + 1j, object),
    "too many columns": lambda: np.full((4, 5), NUMBER),
    "too few columns": lambda: np.full((4, 2), WHOLE),
    "a ragged list": lambda: [[NUMBER, 0.5, 0.5], [NUMBER, WHOLE]],
    "a list of dicts": lambda: [{TEXT: NUMBER}] * 4,
    "an array with a dict": lambda: _array({TEXT: WHOLE}, object),
    "a dict": lambda: {TEXT: [NUMBER] * 4},
    "a set": lambda: {TEXT, NUMBER},
    "a list of sets": lambda: [[{TEXT}, {NUMBER}, 0.5]] * 4,
    "dates": lambda: np.full((4, 3), np.datetime64(WHOLE, "s")),
    "records": lambda: np.array([(NUMBER, TEXT)] * 4, dtype=[("a", "f8"), ("b", "U16")]),
    "a masked array": lambda: np.ma.masked_equal(_array(NUMBER), 0.5),
    "pandas with strings": lambda: _frame([TEXT, "b", "c", "d"]),
    "pandas with categories": lambda: _frame(pd.Categorical([TEXT, "b", "c", TEXT])),
    "pandas with mixed types": lambda: _frame([TEXT, 1, NUMBER, None]),
    "pandas with missing numbers": lambda: _frame([NUMBER, np.nan, NUMBER, NUMBER]),
    "pandas with missing integers": lambda: _frame(pd.array([WHOLE, None, WHOLE, WHOLE], dtype="Int64")),
    "pandas with large numbers": lambda: _frame([NUMBER] * 4),
    "pandas with dates": lambda: _frame(pd.to_datetime([WHOLE] * 4, unit="s")),
    "a pandas column": lambda: pd.Series([NUMBER] * 4),
    "polars with strings": lambda: _polars([TEXT, "b", "c", "d"]),
    "polars with nothing": lambda: _polars([NUMBER, None, NUMBER, NUMBER]),
    "polars with large numbers": lambda: _polars([NUMBER] * 4),
    "a sparse matrix": lambda: _sparse(NUMBER),
    "a sparse matrix with NaN": lambda: _sparse(np.nan) * NUMBER,
    "no rows": lambda: np.full((0, 3), NUMBER),
    "nothing": lambda: None,
}

# Four labels, or what is none.
MARKED_LABELS = {
    "an unknown string": lambda: ["yes", "no", TEXT, "no"],
    "an array with an unknown string": lambda: np.array(["yes", "no", TEXT, "no"]),
    "objects": lambda: np.array(["yes", "no", TEXT, "no"], dtype=object),
    "an unknown integer": lambda: [0, 1, WHOLE, 1],
    "an unknown number": lambda: np.array([0.0, 1.0, NUMBER, 1.0]),
    "single precision": lambda: np.array([0, 1, NUMBER, 1], dtype=np.float32),
    "NaN": lambda: [0.0, NUMBER, np.nan, 1.0],
    "infinity": lambda: [0.0, NUMBER, np.inf, 1.0],
    "mixed types": lambda: [0, TEXT, NUMBER, None],
    "objects of mixed types": lambda: np.array([0, TEXT, NUMBER, None], dtype=object),
    "an integer of many digits": lambda: [0, 1, WHOLE * 10**400, 1],
    "two columns": lambda: np.full((4, 2), WHOLE),
    "a column of strings": lambda: np.array([["yes"], ["no"], [TEXT], ["no"]]),
    "a ragged list": lambda: [[TEXT], [TEXT, NUMBER], [], []],
    "dicts": lambda: [{TEXT: NUMBER}] * 4,
    "sets": lambda: [{TEXT, NUMBER}] * 4,
    "a dict": lambda: {TEXT: NUMBER},
    "a number": lambda: NUMBER,
    "an array of no dimension": lambda: np.array(WHOLE),
    "a string": lambda: TEXT,
    "complex numbers": lambda: np.array([NUMBER + 1j] * 4),
    "bytes": lambda: np.array(["yes", "no", TEXT, "no"], dtype=bytes),
    "dates": lambda: np.full(4, np.datetime64(WHOLE, "s")),
    "pandas": lambda: pd.Series(["yes", "no", TEXT, "no"]),
    "pandas with categories": lambda: pd.Series(pd.Categorical(["yes", "no", TEXT, "no"])),
    "pandas with missing integers": lambda: pd.Series(pd.array([0, None, WHOLE, 1], dtype="Int64")),
    "a pandas table": lambda: pd.DataFrame({"sick": ["yes", "no", TEXT, "no"]}),
    "polars": lambda: __import__("polars").Series("sick", ["yes", "no", TEXT, "no"]),
    "sparse": lambda: sparse.csr_matrix(np.array([[0.0, NUMBER, 1.0, 1.0]])),
    "too few": lambda: [TEXT, WHOLE],
    "none": lambda: [],
    "nothing": lambda: None,
}
