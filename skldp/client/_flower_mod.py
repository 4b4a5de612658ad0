"""Mod of Flower that releases the clipped update of any model as a report of a policy."""

from collections.abc import Callable
from typing import Any

import numpy as np

from skldp._tables import require
from skldp.client._ledger import DeviceLedger
from skldp.client._policy import Policy
from skldp.client._vector_field import VectorField


def flower_mod(policy: Policy, ledger: Callable[[Any], DeviceLedger]) -> Callable[[Any, Any, Any], Any]:
    """Make a Flower mod that replaces the answer of a node by a report of its clipped update.

    Parameters
    ----------
    policy : Policy
        Policy with one field, a :class:`~skldp.client.VectorField` of as many numbers as the model has.
    ledger : callable
        Takes Flower's context and returns the account of this node's person.

    Returns
    -------
    callable
        For ``ClientApp(mods=[...])``, before other mods. A reply to a "train" message has ``"report"`` in the
        ``ConfigRecord`` ``"skldp"``, for :meth:`skldp.Collector.add`. Replies to other messages are empty.

    Raises
    ------
    ValueError
        If the policy has other fields. From the mod: if the arrays of the answer have other names or shapes than those
        of the task, or the task's another size than the policy; nothing is charged or sent then.
    BudgetExhaustedError
        From the mod, if the account does not admit the report.

    Notes
    -----
    A node is one person. The update is the difference of the answered arrays and those of the task, all arrays after
    each other in the order of the task. Metrics and numbers of examples are dropped, since they depend on the data, and
    so do metrics of an evaluation. A failure of the training shows as a missing report.

    Examples
    --------
    >>> from skldp.client import DeviceLedger, Policy, VectorField
    >>> from skldp.flower import flower_mod
    >>> policy = Policy("train a model", (VectorField.privunit("update", 1000, 4.0, bound=0.5),))
    >>> mod = flower_mod(policy, lambda context: DeviceLedger("mine.sqlite", lifetime_epsilon=40.0))
    """
    field = policy.fields[0]
    if len(policy.fields) != 1 or not isinstance(field, VectorField):
        raise ValueError("The policy of a mod must have one field, a VectorField; got another policy.")

    def mod(message: Any, context: Any, call_next: Callable[[Any, Any], Any]) -> Any:
        flower = require("flwr.app", extra="flower")
        content = flower.RecordDict()
        if message.metadata.message_type.split(".")[0] == "train":
            before = _arrays(message)
            if sum(one.size for one in before.values()) != field.law.n_values:
                raise ValueError(f"The task's arrays must have {field.law.n_values} numbers; got others.")
            after = _arrays(call_next(message, context))
            if {key: one.shape for key, one in before.items()} != {key: one.shape for key, one in after.items()}:
                raise ValueError("The arrays of an answer must have the names and shapes of the task's; got others.")
            # An update that is not finite is reported as zeros, without a warning.
            with np.errstate(invalid="ignore", over="ignore"):
                update = [np.ravel(after[key] - one) for key, one in before.items()]
            report = policy.release({field.name: np.concatenate([*update, np.empty(0)])}, ledger=ledger(context))
            content["skldp"] = flower.ConfigRecord({"report": report})
        return flower.Message(content, reply_to=message)

    return mod


def _arrays(message: Any) -> dict[tuple[str, str], np.ndarray]:
    """Return the arrays of a message by the names of their record and their own, in double precision."""
    records = message.content.array_records.items()
    return {
        (record, name): np.asarray(array.numpy(), dtype=np.float64)
        for record, arrays in records
        for name, array in arrays.items()
    }
