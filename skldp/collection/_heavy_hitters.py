"""Heavy hitters of a domain that is too large to be listed, by prefixes: one group of people for each length."""

from typing import NamedTuple

import numpy as np
from scipy.stats import binom, norm

from skldp._checks import check_epsilon, check_fraction, check_integer
from skldp.client import CategoryField, Policy, PrefixDomain, PrefixTask
from skldp.client._prefixes import PREFIX
from skldp.collection._answer_scores import SupportScores, code_scores
from skldp.collection._collector import Collector
from skldp.collection._survey_estimates import SurveyEstimate
from skldp.laws._integers import CodeLaw
from skldp.mechanisms import LocalHashing
from skldp.mechanisms.categorical._unary import OneHotRandomizedResponse

_MOST_CANDIDATES = 2**20 - 1


class Round(NamedTuple):
    """Closed round: length of the prefixes, number of reports, and the kept prefixes."""

    length: int
    n_reports: int
    kept: tuple[str, ...]


class HeavyHitters:
    r"""Find frequent words or codes of a domain that is too large to be listed.

    People are divided into groups. Each group answers once about prefixes of one length; the most frequent prefixes are
    extended for the next group, and the last group answers about complete words.

    Parameters
    ----------
    domain : PrefixDomain
    epsilon : float
        Natural-log budget of one person, who is in one group.
    purpose : str
        Purpose of the collection, shown to people.
    n_kept : int, default=32
        Largest number of prefixes that are extended; more than the number of words that are searched.
    n_candidates : int, default=4096
        Largest number of prefixes in a task, below 2^20. A larger number needs fewer groups, of more people each, and
        longer documents: 524,288 and ``n_kept=53`` need two groups for 32 bits, and documents of 15 million characters.
    false_positives : float, default=0.05
        Largest probability of finding any word that no person of the last group has, if reports are honest. A share of
        forged reports of about :attr:`least_share` suffices to have a word found.

    Raises
    ------
    ValueError
        If a parameter is out of range, or `n_candidates` is too small to extend each kept prefix by one character.

    See Also
    --------
    skldp.client.PrefixTask : The task that a device answers.
    Collector : Store of the reports of a group.

    Notes
    -----
    The candidates of a round and "none of these" are the categories of a policy, answered by randomized response or
    local hashing, whichever has the smaller variance. Groups must not depend on what people have, and should have the
    sizes of :attr:`group_shares`.

    A report supports a candidate that its sender does not have with one probability q. Without senders, the support
    among n reports is binomial, and a word is found if its support is at least

    .. math:: t = \min \{ t : P(\mathrm{Bin}(n, q) \ge t) \le \alpha / K \}

    with :math:`\alpha` of `false_positives` and K candidates, which bounds the probability of any false positive.
    Earlier groups keep the `n_kept` most frequent prefixes; others are lost. A word with share :attr:`least_share` is
    found in about half of all runs; this share falls with the root of a group's size.

    Tasks are public and depend on reports only, whose order does not matter: keep the reports of each group, and add
    them again to resume.

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
            raise ValueError(f"domain must be a PrefixDomain; got {type(domain).__name__}.")
        check_epsilon(epsilon)
        check_integer("n_candidates", n_candidates, least=2, most=_MOST_CANDIDATES)
        check_integer("n_kept", n_kept, least=1, most=n_candidates)
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
        """The task of the next group; None after the last round."""
        return self._task

    @property
    def collector(self) -> Collector:
        """The collector of the open task; raises ValueError after the last round."""
        if self._collector is None:
            raise ValueError("There is no collector: all rounds are closed.")
        return self._collector

    def close_round(self) -> None:
        """Keep prefixes by the reports of the round, and open the next round.

        Raises
        ------
        ValueError
            If there are fewer than two reports, or all rounds are closed; nothing changes then.
        """
        task, collector = self._task, self.collector
        assert task is not None
        values = collector.frequencies(PREFIX, consistent=None).values[:-1]
        candidates, is_last = task.candidates, len(self.rounds) + 1 == len(self.lengths)
        if is_last:
            support = _scores(collector).counts(collector._answers[PREFIX])
            chosen = np.flatnonzero(support[:-1] >= self._threshold(collector))
        else:
            # Ties keep the first ones.
            chosen = np.argsort(-values, kind="stable")[: self.n_kept]
        kept = tuple(candidates[i] for i in sorted(chosen))
        self.rounds = (*self.rounds, Round(task.length, collector.n_reports, kept))
        self._last = collector if is_last else None
        self._begin()

    @property
    def found(self) -> tuple[str | int, ...]:
        """The words that were found, codes as integers; raises ValueError if a round is open."""
        if self._task is not None:
            raise ValueError(f"Words are found after {len(self.lengths)} rounds; only {len(self.rounds)} are closed.")
        return tuple(map(self.domain.value, self.rounds[-1].kept))

    @property
    def group_shares(self) -> tuple[float, ...]:
        """Parts of all people for the groups, with which one share suffices to be kept and to be found."""
        weights, before = [], 0
        for length in self.lengths:
            prefix = self.domain.symbols[0] * before
            n = (self.n_kept if before else 1) * self.domain.n_extensions(prefix, before, length)
            passing = self.false_positives if length == self.domain.length else self.n_kept
            # A share one standard error above the cut passes it in 84% of runs; standard errors fall with the root.
            weights.append((1 + max(0.0, norm.isf(min(1.0, passing / n)))) ** 2)
            before = length
        return tuple(float(one / sum(weights)) for one in weights)

    @property
    def least_share(self) -> float:
        """The smallest estimated share that is found; raises ValueError as :meth:`estimate`."""
        last = self._last_group()
        scores = _scores(last)
        return (self._threshold(last) / last.n_reports - scores.q) / (scores.p - scores.q)

    def estimate(self, level: float = 0.95) -> SurveyEstimate:
        """Estimate the shares of the words that were found, from the last group.

        Parameters
        ----------
        level : float, default=0.95
            Joint confidence level of the intervals of all candidates of the last group. The same reports select and
            estimate, so estimates are too large on average; joint intervals remain valid. They are exact
            (Clopper-Pearson).

        Returns
        -------
        SurveyEstimate
            In descending order, with the level of each interval.

        Raises
        ------
        ValueError
            If a round is open.
        """
        check_fraction("level", level)
        last, found = self._last_group(), self.found
        field = last.policy.fields[0]
        assert isinstance(field, CategoryField)
        each = 1 - (1 - level) / (len(field.values) - 1)
        shares = last.frequencies(PREFIX, consistent=None, level=each)
        place = {word: i for i, word in enumerate(field.values)}
        own = np.array([place[word] for word in self.rounds[-1].kept], dtype=np.int64)
        order = np.argsort(-shares.values[own], kind="stable")
        labels = [str(found[i]) for i in order]
        what = f"shares of what was found for {self.purpose!r}, all intervals together {100 * level:.4g}%"
        return shares.only(own[order].tolist(), labels, what)

    def _asked(self) -> tuple[int, list[str]]:
        """Return the length and the candidates of the next round."""
        length = self.lengths[len(self.rounds)]
        before, kept = (self.rounds[-1].length, self.rounds[-1].kept) if self.rounds else (0, ("",))
        return length, sorted(word for one in kept for word in self.domain.extensions(one, before, length))

    def _begin(self) -> None:
        """Open the next round."""
        self._task: PrefixTask | None = None
        self._collector: Collector | None = None
        if len(self.rounds) == len(self.lengths):
            return
        length, candidates = self._asked()
        n = len(candidates) + 1
        response, hashing = OneHotRandomizedResponse(self.epsilon, n), LocalHashing(self.epsilon, n)
        law = (response if response.worst_case_variance <= hashing.worst_case_variance else hashing).integer_law
        assert isinstance(law, CodeLaw)
        field = CategoryField(PREFIX, (*candidates, None), law, unknown=None)
        self._task = PrefixTask(self.domain, length, Policy(self.purpose, (field,)))
        self._collector = Collector(self._task.policy)

    def _last_group(self) -> Collector:
        """Return the collector of the last group; raises ValueError if a round is open."""
        _ = self.found
        assert self._last is not None
        return self._last

    def _threshold(self, collector: Collector) -> int:
        """Return the smallest support that is found."""
        scores = _scores(collector)
        chance = self.false_positives / (scores.n_parts - 1)
        # The survival function is P(X > k).
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
    """Return the lengths of prefixes for the fewest rounds, in even steps after the first."""
    first = _furthest(domain, 0, 1, n_candidates)
    step = _furthest(domain, 1, n_kept, n_candidates)
    left = domain.length - first
    if not first or (left and not step):
        raise ValueError(f"n_candidates must suffice to extend {n_kept} prefixes by a character; got {n_candidates}.")
    n_more = -(-left // step) if left else 0
    return tuple(first + left * i // max(1, n_more) for i in range(n_more + 1))


def _furthest(domain: PrefixDomain, length: int, n_prefixes: int, n_candidates: int) -> int:
    """Return how many characters to add per round."""
    steps = range(1, domain.length - length + 1)
    prefix = domain.symbols[0] * length
    fitting = [s for s in steps if n_prefixes * domain.n_extensions(prefix, length, length + s) <= n_candidates]
    return max(fitting, default=0)
