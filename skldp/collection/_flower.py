"""Rounds over Flower: a person's one answer is a report of the model's, and their own device says that it was given."""

import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp._checks import check_positive, check_whole
from skldp.client._ledger import DeviceLedger
from skldp.exceptions import BudgetExhaustedError
from skldp.learning._person import Person
from skldp.learning._protocol import Protocol
from skldp.learning._reports import Report
from skldp.mechanisms._noise import noise_from

__all__ = ["flower_client_app", "flower_server_app"]

# What is called so in Flower's messages.
_RECORD = "skldp"
# So often the nodes that are connected are asked for, while there are none.
_PAUSE = 0.5
# So many cohorts in a row that no node answers are no accident.
_PATIENCE = 10

_People = Iterable[tuple[npt.ArrayLike, Any, DeviceLedger]]


def flower_client_app(people: Callable[[Any], _People], *, purpose: str) -> Any:
    """Make a Flower ``ClientApp`` that answers the tasks of a protocol, every person of the node once.

    Parameters
    ----------
    people : callable
        Given Flower's context, it yields of everybody whose records are on this node the features, the target, and the
        :class:`~skldp.client.DeviceLedger` with their own limit. A node of one person yields one.
    purpose : str
        What people were told that they take part in. It is the node's own: whatever the server calls its tasks, a
        person takes part in the same purpose once.

    Returns
    -------
    flwr.clientapp.ClientApp

    Raises
    ------
    ImportError
        If Flower is not installed: ``pip install "skldp[flower]"``.
    ValueError
        If `purpose` is no text.

    See Also
    --------
    flower_server_app : The other side.
    skldp.learning.Person : What checks a task and answers it.

    Notes
    -----
    A task is hostile input: that it is one, about such records and within the person's limit, is checked before the
    record is looked at. The answer's cost is in the ledger's file before anything is drawn, so that a node which is
    killed may lose an answer and never gives a second one. What a node sends is the sum of its people's reports, and
    how many of them have not taken part.

    Examples
    --------
    >>> from skldp import flower_client_app
    >>> flower_client_app(lambda context: [], purpose="")
    Traceback (most recent call last):
    ...
    ValueError: purpose must be a text of at least one letter. Got '' instead.
    """
    if not isinstance(purpose, str) or not purpose:
        raise ValueError(f"purpose must be a text of at least one letter. Got {purpose!r} instead.")
    flower = _flower()
    # Its decorators, and those of the server, have types in some versions of Flower alone.
    app = flower.clientapp.ClientApp()

    def reply(message: Any, told: dict[str, Any]) -> Any:
        content = flower.app.RecordDict({_RECORD: flower.app.ConfigRecord(told)})
        return flower.app.Message(content, reply_to=message)

    @app.query()  # type: ignore[untyped-decorator, unused-ignore]
    def count(message: Any, context: Any) -> Any:
        return reply(message, {"left": len(_not_yet(people(context), purpose))})

    @app.train()  # type: ignore[untyped-decorator, unused-ignore]
    def answer(message: Any, context: Any) -> Any:
        asked = message.content[_RECORD]
        report, left = answers_of_node(people(context), purpose, asked["task"], asked["wanted"])
        return reply(message, {"report": "" if report is None else report.to_json(), "left": left})

    return app


def flower_server_app(
    protocol: Callable[[Any], Protocol],
    state: str | PathLike[str],
    *,
    least_nodes: int = 1,
    timeout: float = 60.0,
) -> Any:
    """Make a Flower ``ServerApp`` that carries a protocol out: it asks cohorts, averages, and goes on.

    Parameters
    ----------
    protocol : callable
        Given Flower's context, it makes the protocol, such as a :class:`~skldp.learning.RegressionProtocol`.
    state : str or path-like
        A file that the protocol's state is in after every step, as ``to_json`` writes it; the model is read from it by
        ``from_json``. If it is there at the beginning, the protocol goes on from it.
    least_nodes : int, default=1
        So many must be connected before a cohort is asked.
    timeout : float, default=60.0
        Seconds that a node may take to answer. One that takes longer is asked again in the next step.

    Returns
    -------
    flwr.serverapp.ServerApp

    Raises
    ------
    ImportError
        If Flower is not installed: ``pip install "skldp[flower]"``.
    ValueError
        If a number is out of its range.

    See Also
    --------
    flower_client_app : The other side.

    Notes
    -----
    Everything that the server has is public. How many people a node has it says itself, and a report is of no more
    people than were asked for; one that is none of the open task is left out. Whoever may connect to the server decides
    how much a made-up node can do: see Flower's authentication of SuperNodes. A node that is killed and comes back has
    those people left whose own devices say so; a cohort that answers in part teaches less. Where nobody of a cohort
    answers, others are asked, as long as there are any; if no node answers ten cohorts in a row, the run ends with an
    error.

    Examples
    --------
    >>> from skldp import flower_server_app
    >>> flower_server_app(lambda context: None, "state.json", timeout=0)
    Traceback (most recent call last):
    ...
    ValueError: timeout must be a finite number > 0. Got 0 instead.
    """
    check_whole("least_nodes", least_nodes, least=1)
    check_positive("timeout", timeout)
    flower = _flower()
    app = flower.serverapp.ServerApp()

    @app.main()  # type: ignore[untyped-decorator, unused-ignore]
    def main(grid: Any, context: Any) -> None:
        def exchange(kind: str, told: dict[int, dict[str, Any]]) -> dict[int, Any]:
            messages = [
                flower.app.Message(
                    flower.app.RecordDict({_RECORD: flower.app.ConfigRecord(one)}),
                    dst_node_id=node,
                    message_type=kind,
                    ttl=timeout,
                )
                for node, one in told.items()
            ]
            replies = grid.send_and_receive(messages, timeout=timeout)
            return {one.metadata.src_node_id: _told(one) for one in replies if one.has_content()}

        def connected() -> list[int]:
            while len(nodes := list(grid.get_node_ids())) < least_nodes:
                time.sleep(_PAUSE)
            return nodes

        learn(opened(protocol(context), state), state, connected, exchange)

    return app


def answers_of_node(people: _People, purpose: str, task: str, wanted: int) -> tuple[Report | None, int]:
    """The report of so many of a node's people, chosen by chance, and how many of them have not taken part."""
    waiting = _not_yet(people, purpose)
    secrets.SystemRandom().shuffle(waiting)
    total: Report | None = None
    n_gone = 0
    for x, y, ledger in waiting:
        if (total is not None and total.n_people >= wanted) or wanted < 1:
            break
        n_gone += 1
        try:
            text = Person(x, y, epsilon=ledger.lifetime_epsilon, spend=_taking_part(ledger, purpose)).answer(task)
        except BudgetExhaustedError:
            # Their own limit says no, and others are asked.
            continue
        report = Report.from_json(text)
        total = report if total is None else total + report
    return total, len(waiting) - n_gone


def learn(
    protocol: Protocol,
    state: str | PathLike[str],
    connected: Callable[[], list[int]],
    exchange: Callable[[str, dict[int, dict[str, Any]]], dict[int, Any]],
) -> None:
    """Carry a protocol out, with the state in a file after every step.

    Parameters
    ----------
    protocol : Protocol
    state : str or path-like
    connected : callable
        Gives the nodes.
    exchange : callable
        Sends every node what it is told, and gives what the ones that answered say: a kind of message, and by node
        what is told.

    Raises
    ------
    RuntimeError
        If no node answers ten cohorts in a row.
    """
    left: dict[int, int] = {}
    n_unanswered = 0
    new: dict[int, dict[str, Any]]
    while (task := protocol.task) is not None:
        nodes = connected()
        new = {node: {} for node in nodes if node not in left}
        unknown = exchange("query", new) if new else {}
        left = {node: n for node, n in left.items() if node in nodes}
        left |= {node: _people_left(told, protocol) for node, told in unknown.items()}
        if not left:
            continue
        reports: list[Report] = []
        asked = _cohort(left, protocol.n_wanted)
        if asked:
            document = task.to_json()
            answers = exchange("train", {node: {"task": document, "wanted": n} for node, n in asked.items()})
            n_unanswered = 0 if answers else n_unanswered + 1
            if n_unanswered >= _PATIENCE:
                raise RuntimeError(
                    f"Of {_PATIENCE} cohorts in a row, some node must answer. Got none: see what the nodes log, "
                    "such as another version of skldp. The state that was reached is in its file."
                )
            for node, n in asked.items():
                # Whoever says nothing is asked for the number of their people again.
                del left[node]
                if node in answers:
                    left[node] = _people_left(answers[node], protocol)
                    reports += _checked(task, answers[node], n)
            if not reports and protocol.n_wanted:
                continue
        protocol.next(reports)
        save(protocol, state)


def opened(protocol: Protocol, state: str | PathLike[str]) -> Protocol:
    """The protocol as a file says that it was left, if there is one, else the one that was made."""
    path = Path(state)
    if not path.exists():
        return protocol
    found = type(protocol).from_json(path.read_text(encoding="utf-8"))
    if json.loads(found.to_json())["settings"] != json.loads(protocol.to_json())["settings"]:
        raise ValueError("The state must be that of the same protocol. Got one of other settings instead.")
    return found


def save(protocol: Protocol, state: str | PathLike[str]) -> None:
    """Write the state so that whoever is killed meanwhile leaves the one before."""
    path = Path(state)
    written = path.with_name(path.name + ".part")
    with open(written, "w", encoding="utf-8") as file:
        file.write(protocol.to_json())
        file.flush()
        os.fsync(file.fileno())
    os.replace(written, path)


def _key(purpose: str) -> str:
    return hashlib.sha256(b"skldp: rounds\0" + purpose.encode()).hexdigest()


def _not_yet(people: _People, purpose: str) -> list[tuple[npt.ArrayLike, Any, DeviceLedger]]:
    """Those who have not taken part."""
    key = _key(purpose)
    return [one for one in people if key not in one[2].reports()]


def _taking_part(ledger: DeviceLedger, purpose: str) -> Callable[[float], None]:
    key = _key(purpose)

    def spend(epsilon: float) -> None:
        ledger.charge(key, epsilon)
        # Of two processes on a device the second one is too late, whatever it read before.
        if ledger.reports()[key] > 1:
            raise BudgetExhaustedError("Every person takes part once. Got a task after the one that was answered.")

    return spend


def _cohort(left: dict[int, int], wanted: int) -> dict[int, int]:
    """How many people of every node are asked, everybody who is left being as likely."""
    counts = np.array(list(left.values()), dtype=np.int64)
    total = int(counts.sum())
    # Those who are fewer are drawn one after another, which keeps memory to a cohort's: who is asked, or who is not.
    n_drawn = min(wanted, max(0, total - wanted))
    places, noise = np.empty(0, dtype=np.int64), noise_from()
    while places.size < n_drawn:
        places = np.union1d(places, noise.integers(total, n_drawn - places.size))
    drawn = np.bincount(np.searchsorted(np.cumsum(counts), places, side="right"), minlength=counts.size)
    chosen = drawn if n_drawn == wanted else counts - drawn
    return {node: int(n) for node, n in zip(left, chosen, strict=True) if n}


def _people_left(told: Any, protocol: Protocol) -> int:
    """What a node says of itself, as far as it can be."""
    left = told.get("left") if isinstance(told, dict) else None
    return min(left, protocol.n_people) if type(left) is int and left > 0 else 0


def _checked(task: Any, told: Any, n_asked: int) -> Iterator[Report]:
    """The report of a node, if it is one of this task and of no more people than were asked."""
    text = told.get("report") if isinstance(told, dict) else None
    if not isinstance(text, str) or not text:
        return
    try:
        report = Report.from_json(text)
        task.check(report)
    except ValueError:
        return
    if report.n_people <= n_asked:
        yield report


def _told(message: Any) -> Any:
    """What a node says, as a dictionary; None if it says nothing of the kind."""
    record = message.content.get(_RECORD)
    return None if record is None else dict(record)


def _flower() -> Any:
    try:
        import flwr.app
        import flwr.clientapp
        import flwr.serverapp
    except ImportError as error:
        raise ImportError('Rounds over Flower need it: pip install "skldp[flower]".') from error
    return flwr
