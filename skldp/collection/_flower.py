"""Rounds of a protocol over Flower. Each person answers once, which the ledger of their device records."""

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

from skldp._checks import check_integer, check_positive
from skldp._tables import require
from skldp.client._ledger import DeviceLedger
from skldp.exceptions import BudgetExhaustedError
from skldp.learning._person import Person
from skldp.learning._protocol import Protocol
from skldp.learning._reports import Report
from skldp.mechanisms._noise import noise_from

# Name of the record in messages of Flower.
_RECORD = "skldp"
# Seconds between polls for connected nodes.
_PAUSE = 0.5
# Cohorts in a row without any answer before the run fails.
_PATIENCE = 10

_People = Iterable[tuple[npt.ArrayLike, Any, DeviceLedger]]


def flower_client_app(people: Callable[[Any], _People], *, purpose: str) -> Any:
    """Return a Flower ``ClientApp`` that answers the tasks of a protocol, each person of the node once.

    Parameters
    ----------
    people : callable
        Takes Flower's context and yields the features, the target and the :class:`~skldp.client.DeviceLedger` of each
        person of this node.
    purpose : str
        Purpose that people agreed to. A person takes part in a purpose once, whatever the server calls its tasks.

    Raises
    ------
    ImportError
        If Flower is not installed: ``pip install "skldp[flower]"``.
    ValueError
        If `purpose` is empty or no text.

    See Also
    --------
    flower_server_app : The other side.
    skldp.learning.Person : Checks and answers a task.

    Notes
    -----
    A task is not trusted: its form, its domain and its epsilon are checked before the record is read. The cost of an
    answer is in the ledger's file before anything is drawn: a crash may lose an answer, and never repeats one. A node
    sends the sum of its people's reports, and how many people have not taken part.

    Examples
    --------
    >>> from skldp.flower import flower_client_app
    >>> flower_client_app(lambda context: [], purpose="")
    Traceback (most recent call last):
    ...
    ValueError: purpose must be a text of at least one letter; got ''.
    """
    if not isinstance(purpose, str) or not purpose:
        raise ValueError(f"purpose must be a text of at least one letter; got {purpose!r}.")
    flower = _flower()
    # Its decorators, and those of the server, have types in some versions of Flower alone.
    app = flower.clientapp.ClientApp()

    def reply(message: Any, answer: dict[str, Any]) -> Any:
        content = flower.app.RecordDict({_RECORD: flower.app.ConfigRecord(answer)})
        return flower.app.Message(content, reply_to=message)

    @app.query()  # type: ignore[untyped-decorator, unused-ignore]  # Flower has no types
    def count(message: Any, context: Any) -> Any:
        return reply(message, {"left": len(_not_yet(people(context), purpose))})

    @app.train()  # type: ignore[untyped-decorator, unused-ignore]  # Flower has no types
    def answer(message: Any, context: Any) -> Any:
        asked = message.content[_RECORD]
        report, left = answers_of_node(people(context), purpose, asked["task"], asked["wanted"])
        return reply(message, {"report": "" if report is None else report.to_json(), "left": left})

    return app


def flower_server_app(
    protocol: Callable[[Any], Protocol], state: str | PathLike[str], *, least_nodes: int = 1, timeout: float = 60.0
) -> Any:
    """Return a Flower ``ServerApp`` that runs a protocol.

    Parameters
    ----------
    protocol : callable
        Takes Flower's context and makes the protocol, such as a :class:`~skldp.learning.RegressionProtocol`.
    state : str or path-like
        File of the protocol's state after every step, as ``to_json`` writes it. A run resumes from it if it exists.
    least_nodes : int, default=1
        Number of nodes that must be connected before a cohort is asked.
    timeout : float, default=60.0
        Seconds to wait for answers. A node that takes longer is asked again in the next step.

    Raises
    ------
    ImportError
        If Flower is not installed: ``pip install "skldp[flower]"``.
    ValueError
        If a number is out of range.

    See Also
    --------
    flower_client_app : The other side.

    Notes
    -----
    Everything on the server is public. A node states its number of people; its report counts at most the people that
    were asked, and is dropped if it is not of the open task. Authenticate nodes to limit the effect of forged ones: see
    Flower's authentication of SuperNodes. If no node of a cohort answers, others are asked; after ten such cohorts in a
    row the run raises RuntimeError.

    Examples
    --------
    >>> from skldp.flower import flower_server_app
    >>> flower_server_app(lambda context: None, "state.json", timeout=0)
    Traceback (most recent call last):
    ...
    ValueError: timeout must be a finite number > 0; got 0.
    """
    check_integer("least_nodes", least_nodes, least=1)
    check_positive("timeout", timeout)
    flower = _flower()
    app = flower.serverapp.ServerApp()

    @app.main()  # type: ignore[untyped-decorator, unused-ignore]  # Flower has no types
    def main(grid: Any, context: Any) -> None:
        def exchange(kind: str, requests: dict[int, dict[str, Any]]) -> dict[int, Any]:
            messages = []
            for node, one in requests.items():
                content = flower.app.RecordDict({_RECORD: flower.app.ConfigRecord(one)})
                messages.append(flower.app.Message(content, dst_node_id=node, message_type=kind, ttl=timeout))
            replies = grid.send_and_receive(messages, timeout=timeout)
            return {one.metadata.src_node_id: _content(one) for one in replies if one.has_content()}

        def connected() -> list[int]:
            while len(nodes := list(grid.get_node_ids())) < least_nodes:
                time.sleep(_PAUSE)
            return nodes

        learn(opened(protocol(context), state), state, connected, exchange)

    return app


def answers_of_node(people: _People, purpose: str, task: str, wanted: int) -> tuple[Report | None, int]:
    """Return the report of randomly chosen people of a node, and how many have not taken part."""
    waiting = _not_yet(people, purpose)
    secrets.SystemRandom().shuffle(waiting)
    reports: list[Report] = []
    n_gone = 0
    for x, y, ledger in waiting:
        if len(reports) >= wanted:
            break
        n_gone += 1
        try:
            text = Person(x, y, epsilon=ledger.lifetime_epsilon, spend=_taking_part(ledger, purpose)).answer(task)
        except BudgetExhaustedError:
            # Beyond the person's limit; others are asked.
            continue
        reports.append(Report.from_json(text))
    return Report.total(reports) if reports else None, len(waiting) - n_gone


def learn(
    protocol: Protocol,
    state: str | PathLike[str],
    connected: Callable[[], list[int]],
    exchange: Callable[[str, dict[int, dict[str, Any]]], dict[int, Any]],
) -> None:
    """Run a protocol, with the state in a file after every step."""
    left: dict[int, int] = {}
    n_unanswered = 0
    while (task := protocol.task) is not None:
        nodes = connected()
        new: dict[int, dict[str, Any]] = {node: {} for node in nodes if node not in left}
        unknown = exchange("query", new) if new else {}
        left = {node: n for node, n in left.items() if node in nodes}
        left |= {node: _people_left(reply, protocol) for node, reply in unknown.items()}
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
                    f"No node answered {_PATIENCE} cohorts in a row; see the logs of the nodes, which may have another "
                    "version of skldp. The state is in its file."
                )
            for node, n in asked.items():
                # Retry nodes that did not report their client count.
                del left[node]
                if node in answers:
                    left[node] = _people_left(answers[node], protocol)
                    reports += _checked(task, answers[node], n)
            if not reports and protocol.n_wanted:
                continue
        protocol.next(reports)
        save(protocol, state)


def opened(protocol: Protocol, state: str | PathLike[str]) -> Protocol:
    """Return the protocol of the state file if there is one, else the given one."""
    path = Path(state)
    if not path.exists():
        return protocol
    found = type(protocol).from_json(path.read_text(encoding="utf-8"))
    if json.loads(found.to_json())["settings"] != json.loads(protocol.to_json())["settings"]:
        raise ValueError("The state must be of the same protocol; got one with other settings.")
    return found


def save(protocol: Protocol, state: str | PathLike[str]) -> None:
    """Write the state atomically: a crash leaves the previous state intact."""
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
    """Return the people who have not reported yet."""
    key = _key(purpose)
    return [one for one in people if key not in one[2].reports()]


def _taking_part(ledger: DeviceLedger, purpose: str) -> Callable[[float], None]:
    key = _key(purpose)

    def spend(epsilon: float) -> None:
        ledger.charge(key, epsilon)
        # Another process of the device may have charged after the check.
        if ledger.reports()[key] > 1:
            raise BudgetExhaustedError("A person takes part in a purpose once; this one has answered a task already.")

    return spend


def _cohort(left: dict[int, int], wanted: int) -> dict[int, int]:
    """Draw a cohort uniformly from the people who are left; returns the number of people by node."""
    counts = np.array(list(left.values()), dtype=np.int64)
    total = int(counts.sum())
    # The smaller of the cohort and the rest is drawn, so that memory is that of the smaller.
    n_drawn = min(wanted, max(0, total - wanted))
    places, noise = np.empty(0, dtype=np.int64), noise_from()
    while places.size < n_drawn:
        places = np.union1d(places, noise.integers(total, n_drawn - places.size))
    drawn = np.bincount(np.searchsorted(np.cumsum(counts), places, side="right"), minlength=counts.size)
    chosen = drawn if n_drawn == wanted else counts - drawn
    return {node: int(n) for node, n in zip(left, chosen, strict=True) if n}


def _people_left(reply: Any, protocol: Protocol) -> int:
    """Return the number of people that a node states, within what is possible."""
    left = reply.get("left") if isinstance(reply, dict) else None
    return min(left, protocol.n_people) if type(left) is int and left > 0 else 0


def _checked(task: Any, reply: Any, n_asked: int) -> Iterator[Report]:
    """Yield the report of a node if it is of this task and of at most the people that were asked."""
    text = reply.get("report") if isinstance(reply, dict) else None
    if not isinstance(text, str) or not text:
        return
    try:
        report = Report.from_json(text)
        task.check(report)
    except ValueError:
        return
    if report.n_people <= n_asked:
        yield report


def _content(message: Any) -> Any:
    """Return the content of a message as a dict, or None."""
    record = message.content.get(_RECORD)
    return None if record is None else dict(record)


def _flower() -> Any:
    for part in ("app", "clientapp", "serverapp"):
        require(f"flwr.{part}", extra="flower")
    return require("flwr", extra="flower")
