"""Tables in, reports out: a policy applied to Arrow record batches, or to columns of any kind, row by row."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from skldp.client import Policy
from skldp.collection._arrow import batch_of_reports, report_schema, require_arrow

__all__ = ["release_batches", "released_batch"]


def release_batches(policy: Policy) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Make the function that releases a stream of Arrow record batches, for the engines that take one.

    Parameters
    ----------
    policy : Policy

    Returns
    -------
    callable
        From an iterable of ``pyarrow.RecordBatch``, whose rows are people, to an iterator of as many, with a report
        for every row in its order, and the `report_schema` of the policy, which is the attribute ``schema`` of the
        function. Columns that the policy does not name are left out. It can be pickled.

    Raises
    ------
    ImportError
        If pyarrow is missing.
    ValueError
        From the iterator: if a batch has not all the columns, the policy has expired, or it refuses a value. Then
        nothing of the batch is released, and no value is shown.

    Notes
    -----
    Every call draws anew: what an engine computes twice, such as a lazy plan that is asked again, a retried task or a
    lost cache, is released twice, at twice the epsilon. Write the result to a file, once, and go on from that.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from skldp import release_batches
    >>> from skldp.client import CategoryField, Policy
    >>> from skldp.mechanisms import RandomizedResponse, integer_law
    >>> city = CategoryField("city", ("Bonn", "Ulm"), integer_law(RandomizedResponse(1.0, 2)))
    >>> release = release_batches(Policy("where people live", (city,)))
    >>> people = pa.table({"name": ["a", "b"], "city": ["Ulm", "Bonn"]})
    >>> reports = pa.Table.from_batches(release(people.to_batches()), schema=release.schema)
    >>> reports.num_rows, reports.column_names
    (2, ['skldp_report_id', 'city'])
    """
    return _Release(policy)


class _Release:
    """What :func:`release_batches` gives: a class, so that engines can send it to other processes."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        # Refuses at once where pyarrow is missing, or a field has the name of the reports' id.
        self.schema = report_schema(policy)

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        pa = require_arrow()
        for batch in batches:
            if not isinstance(batch, pa.RecordBatch):
                raise ValueError(f"People must be in pyarrow.RecordBatch. Got {type(batch).__name__} instead.")
            names = batch.schema.names
            _check_names(self.policy, names)
            columns = {name: batch.column(names.index(name)).to_pylist() for name in self.policy.names}
            yield released_batch(self.policy, columns)

    def __reduce__(self) -> Any:
        return type(self), (self.policy,)


def released_batch(policy: Policy, columns: Mapping[str, Sequence[Any]]) -> Any:
    """Release rows, given by columns, as one record batch.

    Parameters
    ----------
    policy : Policy
    columns : dict of str to sequence
        Of equal lengths, those that the policy names among them.

    Returns
    -------
    pyarrow.RecordBatch

    Raises
    ------
    ValueError
        As of :func:`release_batches`; nothing is drawn then.
    """
    _check_names(policy, list(columns))
    names = policy.names
    rows = zip(*(columns[name] for name in names), strict=True)
    return batch_of_reports(policy, policy.release_all(dict(zip(names, row, strict=True)) for row in rows))


def _check_names(policy: Policy, names: Sequence[str]) -> None:
    missing = sorted(set(policy.names) - set(names))
    twice = sorted({name for name in policy.names if names.count(name) > 1})
    if missing or twice:
        what = f"without {missing}" if missing else f"with {twice} more than once"
        raise ValueError(f"A table must have every column that the policy names, once. Got one {what}.")
