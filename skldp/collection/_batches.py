"""Release of Arrow record batches and tables by a policy, row by row."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from skldp._reading import check_column_names
from skldp._tables import require
from skldp.client._policy import Policy, check_secret
from skldp.collection._report_tables import batch_of_reports, report_schema
from skldp.laws._release_key import ReleaseKey


def release_batches(
    policy: Policy,
    *,
    secret: ReleaseKey | None = None,
    ids: str | None = None,
    handle_unknown: Literal["error", "policy"] = "error",
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Make a function that releases a stream of Arrow record batches, for engines such as Spark.

    Parameters
    ----------
    policy : Policy
        Policy of the releases.
    secret : ReleaseKey, default=None
        Needed under the memo rule ``"permanent"``, and only then: a repeated execution gives equal reports with equal
        ids, of which a collector counts one. Other processes need a key from a file or a function.
    ids : str, default=None
        Column of integer or text ids of people; needed with a `secret`, and only then.
    handle_unknown : {"error", "policy"}, default="error"
        As of :meth:`~skldp.client.Policy.release_table`.

    Returns
    -------
    callable
        From an iterable of ``pyarrow.RecordBatch`` to an iterator of as many, with a report for every row in its order,
        as bytes in a column ``"skldp_report"``, and no other columns. Its attribute ``schema`` is their schema. It can
        be pickled.

    Raises
    ------
    ImportError
        If pyarrow is missing.
    ValueError
        If the memo rule, `secret` and `ids` do not fit together. From the iterator: if a batch
        misses a column, the policy has expired, or a value is refused. Nothing of the batch is released then, and no
        value is shown.
    TypeError
        From the iterator: if an id is neither an integer nor text.

    Notes
    -----
    Without a secret every call draws anew. A lazy plan that is evaluated twice, a retried task or a lost cache releases
    twice, at twice the epsilon: write the result to a file once. With a secret, equal rows of a person are one report,
    and different rows each cost that person their epsilon; see :class:`~skldp.client.Policy`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from skldp import release_batches
    >>> from skldp.client import Field, Policy
    >>> from skldp.mechanisms import Column, RandomizedResponse
    >>> city = Field("city", Column(values=("Bonn", "Ulm")), RandomizedResponse(1.0, 2).integer_law)
    >>> release = release_batches(Policy("where people live", (city,)))
    >>> people = pa.table({"name": ["a", "b"], "city": ["Ulm", "Bonn"]})
    >>> reports = pa.Table.from_batches(release(people.to_batches()), schema=release.schema)
    >>> reports.num_rows, reports.column_names
    (2, ['skldp_report'])
    """
    check_secret(policy, secret, ids)
    release = _BatchRelease(policy, secret, ids, handle_unknown)
    # Fail early if pyarrow is missing.
    _ = release.schema
    return release


@dataclass(frozen=True)
class _BatchRelease:
    """Function of :func:`release_batches` that can be pickled."""

    policy: Policy
    secret: ReleaseKey | None
    ids: str | None
    handle_unknown: str

    @property
    def schema(self) -> Any:
        return report_schema()

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        pa = require("pyarrow", extra="arrow")
        for batch in batches:
            if not isinstance(batch, pa.RecordBatch):
                raise ValueError(f"A batch must be a pyarrow.RecordBatch; got {type(batch).__name__}.")
            names = batch.schema.names
            own = [*self.policy.names, *([] if self.ids is None else [self.ids])]
            check_column_names(own, names)
            columns = {name: batch.column(names.index(name)) for name in own}
            people = None if self.ids is None else batch.column(names.index(self.ids)).to_pylist()
            options: dict[str, Any] = {"people": people, "handle_unknown": self.handle_unknown}
            yield batch_of_reports(self.policy.release_table(columns, secret=self.secret, **options))
