r"""Heavy hitters of a domain that is far too large to be listed, by prefixes: a group of people for each length."""

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from skldp._checks import check_epsilon, check_fraction, check_whole
from skldp.client import CategoryField, Policy, PrefixDomain, PrefixTask
from skldp.client._prefixes import PREFIX
from skldp.client._schema import canonical_text, read_json
from skldp.collection._collector import Collector
from skldp.learning._answer_scores import SupportScores, code_scores
from skldp.learning._survey_estimates import SurveyEstimate
from skldp.mechanisms import LocalHashing, OneHotRandomizedResponse, integer_law
from skldp.mechanisms._integer_laws import CodeLaw

__all__ = ["HeavyHitters", "Round"]

_MOST_CANDIDATES = 2**18


class Round(NamedTuple):
    """What a group of people told.

    Parameters
    ----------
    length : int
        Of the prefixes that it was asked about.
    n_reports : int
    kept : tuple of str
        The prefixes that are gone on with, in ascending order.
    """

    length: int
    n_reports: int
    kept: tuple[str, ...]


class HeavyHitters:
    r"""Find the words or codes that many people have, of a domain that nobody can list.

    People are divided into groups, each of which answers once, about prefixes of one length. What many of a group begin
    with is extended, and the next group is asked about the extensions; the last one about whole words.

    Parameters
    ----------
    domain : PrefixDomain
    epsilon : float
        Natural-log budget of one person, who is in one group.
    purpose : str
        To be shown to people.
    n_kept : int, default=32
        How many prefixes are gone on with at most: above the number of words that are looked for.
    n_candidates : int, default=4096
        How many prefixes a group is asked about at most, up to 2^18. A larger number needs fewer groups, of more people
        each, and longer documents.
    false_positives : float, default=0.05
        The largest probability of finding any word that no person of the last group has. It assumes honest reports:
        forged ones for a word have it found from a share of about :attr:`least_share`.

    Raises
    ------
    ValueError
        If a parameter is not as above, or `n_candidates` is too small for even one more sign of each kept prefix.

    See Also
    --------
    skldp.client.PrefixTask : What a person's own device is told.
    Collector : Who takes the reports of a group.

    Notes
    -----
    A round's candidates are categories, and "none of these" one more, for which randomized response answers, or local
    hashing where that has the smaller variance: laws of integers, of which the exact epsilon is that of each report.
    Who is in which group must not depend on what they have; groups of one size are what the protocol was analysed for.

    A report supports a candidate that its sender does not have with one probability q, exactly. Of n reports of a group
    in which nobody has it, its support is therefore binomial, and a word is found if its support is at least

    .. math:: t = \min \{ t : P(\mathrm{Bin}(n, q) \ge t) \le \alpha / K \}

    with :math:`\alpha` of `false_positives` and K candidates, which bounds the probability of any false one. Of the
    groups before the last, the `n_kept` largest are gone on with, and all that is lost there is lost. A word whose
    share is :attr:`least_share` is found about every other time; this falls as one over the root of a group's size.

    Tasks depend on reports of earlier groups alone, and are public, as states are; the same reports in any order give
    the same.

    References
    ----------
    Wang, Li and Jha, "Locally differentially private heavy hitter identification", IEEE Transactions on Dependable and
    Secure Computing 2019 (PEM), Section 4; Clopper and Pearson, "The use of confidence or fiducial limits illustrated
    in the case of the binomial", Biometrika 1934, for the intervals.

    Examples
    --------
    >>> from skldp import HeavyHitters
    >>> from skldp.client import PrefixDomain, PrefixTask
    >>> domain = PrefixDomain("abc", 4)
    >>> hitters = HeavyHitters(domain, 6.0, "words", n_kept=4, n_candidates=40, false_positives=1e-9)
    >>> hitters.lengths
    (3, 4)
    >>> while hitters.task is not None:
    ...     on_a_device = PrefixTask.from_json(hitters.task.to_json())
    ...     for word in ["cab", "abba"] * 150:
    ...         _ = hitters.collector.add(on_a_device.release(word))
    ...     hitters.close_round()
    >>> sorted(hitters.found)
    ['abba', 'cab']
    >>> sorted(hitters.estimate().labels)
    ['abba', 'cab']
    """

    def __init__(
        self,
        domain: PrefixDomain,
        epsilon: float,
        purpose: str,
        *,
        n_kept: int = 32,
        n_candidates: int = 4096,
        false_positives: float = 0.05,
    ) -> None:
        if not isinstance(domain, PrefixDomain):
            raise ValueError(f"domain must be a PrefixDomain. Got {type(domain).__name__} instead.")
        check_epsilon(epsilon)
        check_whole("n_candidates", n_candidates, least=2, most=_MOST_CANDIDATES)
        check_whole("n_kept", n_kept, least=1, most=n_candidates)
        check_fraction("false_positives", false_positives)
        self.domain, self.epsilon, self.purpose = domain, float(epsilon), purpose
        self.n_kept, self.n_candidates = int(n_kept), int(n_candidates)
        self.false_positives = float(false_positives)
        self.lengths = _lengths(domain, self.n_kept, self.n_candidates)
        self.rounds: tuple[Round, ...] = ()
        self._last: Collector | None = None
        self._begin()

    @property
    def task(self) -> PrefixTask | None:
        """What the next group is to be asked; None when all is done."""
        return self._task

    @property
    def collector(self) -> Collector:
        """Where the reports of the open task go.

        Raises
        ------
        ValueError
            If all rounds are closed.
        """
        if self._collector is None:
            raise ValueError("All rounds are closed. Got a question for the collector of one more.")
        return self._collector

    def close_round(self) -> None:
        """Learn from the reports that came, and open the next round, if there is one.

        Raises
        ------
        ValueError
            If there are fewer than two reports, or all rounds are closed; then nothing has changed.
        """
        task, collector = self._task, self.collector
        assert task is not None
        values = collector.frequencies(PREFIX).values[:-1]
        candidates, is_last = task.candidates, len(self.rounds) + 1 == len(self.lengths)
        if is_last:
            chosen = np.flatnonzero(self._support(collector)[:-1] >= self._threshold(collector))
        else:
            # Of equal ones, those that come first.
            chosen = np.argsort(-values, kind="stable")[: self.n_kept]
        kept = tuple(candidates[i] for i in sorted(chosen))
        self.rounds = (*self.rounds, Round(task.length, collector.n_reports, kept))
        self._last = collector if is_last else None
        self._begin()

    @property
    def found(self) -> tuple[str | int, ...]:
        """The words, or the codes as whole numbers, that were found.

        Raises
        ------
        ValueError
            If a round is open.
        """
        if self._task is not None:
            raise ValueError(f"Words are found by {len(self.lengths)} rounds. Got {len(self.rounds)} closed ones.")
        return tuple(map(self.domain.value, self.rounds[-1].kept))

    @property
    def least_share(self) -> float:
        """The estimated share from which on the last group's reports find a word: what has less stays unseen.

        Raises
        ------
        ValueError
            As of :meth:`estimate`.
        """
        last = self._reports()
        scores = _scores(last)
        return (self._threshold(last) / last.n_reports - scores.q) / (scores.p - scores.q)

    def estimate(self, level: float = 0.95) -> SurveyEstimate:
        """The shares of what was found, by the last group alone.

        Parameters
        ----------
        level : float, default=0.95
            How often all intervals of all candidates of the last group hold their shares together. The same reports
            say what is found and how large it is, so that those that were found are too large on average; intervals
            that hold for all candidates hold for those as well. They are Clopper and Pearson's, exact however few
            reports there are: so far out normal ones miss several times as often as they say.

        Returns
        -------
        SurveyEstimate
            In descending order; its own level is that of each interval alone.

        Raises
        ------
        ValueError
            If a round is open, or this was made from a state, which holds no reports.
        """
        check_fraction("level", level)
        last, found = self._reports(), self.found
        field = last.policy.fields[0]
        assert isinstance(field, CategoryField)
        each = 1 - (1 - level) / (len(field.values) - 1)
        whole = last.frequencies(PREFIX, level=each)
        place = {word: i for i, word in enumerate(field.values)}
        own = np.array([place[word] for word in self.rounds[-1].kept], dtype=np.int64)
        order = np.argsort(-whole.values[own], kind="stable")
        labels = [str(found[i]) for i in order]
        return whole.only(own[order].tolist(), labels, f"shares of what was found for {self.purpose!r}")

    def to_json(self) -> str:
        """The public state: what was asked for, and what the closed rounds left.

        Reports of an open round are in its collector, and in no state.
        """
        domain = {"symbols": self.domain.symbols, "word_length": self.domain.length, "fixed": self.domain.fixed}
        settings = {"epsilon": repr(self.epsilon), "purpose": self.purpose, "n_kept": self.n_kept}
        more = {"n_candidates": self.n_candidates, "false_positives": repr(self.false_positives)}
        rounds = [{"n_reports": one.n_reports, "kept": list(one.kept)} for one in self.rounds]
        return canonical_text({"skldp": "heavy hitters", "version": 1, "rounds": rounds} | domain | settings | more)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Go on from a state, which may be a stranger's. No code is run.

        Raises
        ------
        ValueError
            If it is none that such rounds can have led to.
        """
        given = read_json(text)
        try:
            epsilon, false_positives = float(given["epsilon"]), float(given["false_positives"])
            own = cls(
                PrefixDomain(given["symbols"], given["word_length"], given["fixed"]),
                epsilon,
                given["purpose"],
                n_kept=given["n_kept"],
                n_candidates=given["n_candidates"],
                false_positives=false_positives,
            )
            for one in given["rounds"]:
                own._go_on(one["n_reports"], one["kept"])
            # Once: the policy of a round that is closed is needed by nobody, and there may be hundreds.
            own._begin()
        # Of integers that are too large for any float, the last one.
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"A state must be one that {cls.__name__} wrote. Got another document instead.") from error
        # No other names, types or texts of numbers.
        if own.to_json() != canonical_text(given):
            raise ValueError(f"A state must be in the only form of {cls.__name__}. Got another one instead.")
        return own

    def _go_on(self, n_reports: Any, kept: Any) -> None:
        """Close a round as a state says that it was."""
        if len(self.rounds) == len(self.lengths) or not isinstance(kept, list):
            raise ValueError("A state must have as many rounds as there are lengths at most. Got more instead.")
        check_whole("n_reports", n_reports, least=2)
        length, candidates = self._asked()
        is_last = length == self.domain.length
        n_kept = len(kept) if is_last else min(self.n_kept, len(candidates))
        chosen = set(kept)
        if len(kept) != n_kept or kept != [one for one in candidates if one in chosen]:
            raise ValueError("What a round left must be some of its candidates, in their order. Got others instead.")
        self.rounds = (*self.rounds, Round(length, int(n_reports), tuple(kept)))

    def _asked(self) -> tuple[int, list[str]]:
        """The length of the prefixes that the round after the closed ones is about, and these."""
        length = self.lengths[len(self.rounds)]
        before, kept = (self.rounds[-1].length, self.rounds[-1].kept) if self.rounds else (0, ("",))
        return length, sorted(word for one in kept for word in self.domain.extensions(one, before, length))

    def _begin(self) -> None:
        """Open the round that comes next."""
        self._task: PrefixTask | None = None
        self._collector: Collector | None = None
        if len(self.rounds) == len(self.lengths):
            return
        length, candidates = self._asked()
        n = len(candidates) + 1
        response, hashing = OneHotRandomizedResponse(self.epsilon, n), LocalHashing(self.epsilon, n)
        law = integer_law(response if response.worst_case_variance <= hashing.worst_case_variance else hashing)
        assert isinstance(law, CodeLaw)
        field = CategoryField(PREFIX, (*candidates, None), law, unknown=None)
        self._task = PrefixTask(self.domain, length, Policy(self.purpose, (field,)))
        self._collector = Collector(self._task.policy)

    def _reports(self) -> Collector:
        """Those of the last group."""
        _ = self.found
        if self._last is None:
            raise ValueError("Shares are estimated where the last reports were taken. Got a state without reports.")
        return self._last

    def _support(self, collector: Collector) -> npt.NDArray[np.int64]:
        return _scores(collector).counts(collector._answers[PREFIX])

    def _threshold(self, collector: Collector) -> int:
        """The least support of what is found."""
        scores = _scores(collector)
        chance = self.false_positives / (scores.n_parts - 1)
        # The survival function is of more than a number.
        threshold = int(binom.isf(chance, collector.n_reports, scores.q)) + 1
        while binom.sf(threshold - 1, collector.n_reports, scores.q) > chance:
            threshold += 1
        return threshold


def _scores(collector: Collector) -> SupportScores:
    field = collector.policy.fields[0]
    assert isinstance(field, CategoryField)
    scores = code_scores(field.law)
    assert isinstance(scores, SupportScores)
    return scores


def _lengths(domain: PrefixDomain, n_kept: int, n_candidates: int) -> tuple[int, ...]:
    """The lengths of prefixes, in as few rounds as there can be, with even steps after the first one."""
    first = _furthest(domain, 0, 1, n_candidates)
    step = _furthest(domain, 1, n_kept, n_candidates)
    left = domain.length - first
    if not first or (left and not step):
        raise ValueError(f"n_candidates must be enough for one more sign of {n_kept} prefixes. Got {n_candidates}.")
    n_more = -(-left // step) if left else 0
    return tuple(first + left * i // max(1, n_more) for i in range(n_more + 1))


def _furthest(domain: PrefixDomain, length: int, n_prefixes: int, n_candidates: int) -> int:
    """How many signs so many prefixes can be extended by."""
    steps = range(1, domain.length - length + 1)
    prefix = domain.symbols[0] * length
    fitting = [s for s in steps if n_prefixes * domain.n_extensions(prefix, length, length + s) <= n_candidates]
    return max(fitting, default=0)
