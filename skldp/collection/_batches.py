"""Tables in, reports out: a policy applied to Arrow record batches, or to columns of any kind, row by row."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from skldp.client import Policy
from skldp.collection._arrow import batch_of_bytes, batch_of_reports, bytes_schema, report_schema, require_arrow
from skldp.mechanisms._release_key import ReleaseKey

__all__ = ["check_secret", "release_batches", "released_batch"]


def release_batches(
    policy: Policy,
    *,
    secret: ReleaseKey | None = None,
    ids: str | None = None,
    as_bytes: bool = False,
    handle_unknown: Literal["error", "policy"] = "error",
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Make the function that releases a stream of Arrow record batches, for the engines that take one.

    Parameters
    ----------
    policy : Policy
    secret : ReleaseKey, default=None
        Needed under the memo rule ``"permanent"``, and only then: what is executed twice gives the same reports again,
        ids and all, of which a collector counts one. For other processes, of a file or a function.
    ids : str, default=None
        The column of whole numbers or texts that says whose each row is; needed with a `secret`, and only then.
    as_bytes : bool, default=False
        Whether reports are one column of bytes, as devices send them: for Spark and others that keep neither an Arrow
        schema's metadata nor unsigned numbers.
    handle_unknown : {"error", "policy"}, default="error"
        As of :meth:`~skldp.client.Policy.release_table`.

    Returns
    -------
    callable
        From an iterable of ``pyarrow.RecordBatch``, whose rows are people, to an iterator of as many, with a report
        for every row in its order; their schema is the attribute ``schema`` of the function. Columns that the policy
        does not name are left out. It can be pickled.

    Raises
    ------
    ImportError
        If pyarrow is missing.
    ValueError
        If the memo rule, `secret` and `ids` do not fit together, or a law has two steps. From the iterator: if a batch
        has not all the columns, the policy has expired, or it refuses a value. Then nothing of the batch is released,
        and no value is shown.
    TypeError
        From the iterator: if an id is no whole number and no text.

    Notes
    -----
    Without a secret every call draws anew: what an engine computes twice, such as a lazy plan that is asked again, a
    retried task or a lost cache, is released twice, at twice the epsilon. Write the result to a file, once, and go on
    from that. With one, equal rows of a person are one report, and different ones cost that person each their own
    epsilon; see :class:`~skldp.client.Policy` for what this protects and what it does not.

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
    return _Release(policy, secret, ids, as_bytes, handle_unknown)


class _Release:
    """What :func:`release_batches` gives: a class, so that engines can send it to other processes."""

    def __init__(
        self, policy: Policy, secret: ReleaseKey | None, ids: str | None, as_bytes: bool, unknown: Any
    ) -> None:
        check_secret(policy, secret, ids)
        self.policy, self.secret, self.ids, self.as_bytes = policy, secret, ids, as_bytes
        self.handle_unknown = unknown
        # Refuses at once where pyarrow is missing, or a field has the name of the reports' id.
        self.schema = bytes_schema(policy) if as_bytes else report_schema(policy)

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        pa = require_arrow()
        for batch in batches:
            if not isinstance(batch, pa.RecordBatch):
                raise ValueError(f"People must be in pyarrow.RecordBatch. Got {type(batch).__name__} instead.")
            names = batch.schema.names
            own = [*self.policy.names, *([] if self.ids is None else [self.ids])]
            _check_names(own, names)
            columns = {name: batch.column(names.index(name)) for name in own}
            people = None if self.ids is None else batch.column(names.index(self.ids)).to_pylist()
            how = {"as_bytes": self.as_bytes, "handle_unknown": self.handle_unknown}
            yield released_batch(self.policy, columns, self.secret, people, **how)

    def __reduce__(self) -> Any:
        return type(self), (self.policy, self.secret, self.ids, self.as_bytes, self.handle_unknown)


def released_batch(
    policy: Policy,
    columns: Mapping[str, Sequence[Any]],
    secret: ReleaseKey | None = None,
    people: Sequence[int | str] | None = None,
    *,
    as_bytes: bool = False,
    **options: Any,
) -> Any:
    """Release rows, given by columns, as one record batch.

    Parameters
    ----------
    policy : Policy
    columns : dict of str to sequence
        Of equal lengths, those that the policy names among them.
    secret : ReleaseKey, default=None
    people : sequence of int or str, default=None
        Whose row each is, with a secret.
    as_bytes : bool, default=False
    **options
        As of :meth:`~skldp.client.Policy.release_table`.

    Returns
    -------
    pyarrow.RecordBatch

    Raises
    ------
    ValueError, TypeError
        As of :func:`release_batches`; nothing is handed out then.
    """
    _check_names(policy.names, list(columns))
    reports = policy.release_table(columns, secret=secret, people=people, **options)
    return (batch_of_bytes if as_bytes else batch_of_reports)(policy, reports)


def check_secret(policy: Policy, secret: ReleaseKey | None, ids: str | None) -> None:
    """Refuse a secret or a column of ids that does not fit to the policy's memo rule, and a policy of waves.

    Raises
    ------
    ValueError
        If they do not.
    """
    kept = policy.memo == "permanent"
    if kept is not isinstance(secret, ReleaseKey) or (secret is None) is not (ids is None):
        raise ValueError(
            "A secret, and the column of ids that says whose each row is, are for the memo rule 'permanent', which "
            f"needs both. Got {'no secret' if secret is None else type(secret).__name__} and "
            f"{'no ids' if ids is None else 'ids'} for the rule {policy.memo!r}."
        )
    if policy.has_waves:
        raise ValueError(
            "Laws of two steps report in waves, which Policy.release is told: tables are released by laws of one step. "
            "Got a policy of two steps."
        )


def _check_names(wanted: Sequence[str], names: Sequence[str]) -> None:
    missing = sorted(set(wanted) - set(names))
    twice = sorted({name for name in wanted if names.count(name) > 1})
    if missing or twice:
        what = f"without {missing}" if missing else f"with {twice} more than once"
        raise ValueError(f"A table must have every column that the policy names, once. Got one {what}.")
