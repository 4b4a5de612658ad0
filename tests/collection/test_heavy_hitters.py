"""Heavy hitters by prefix: domains against a naive reference, exact thresholds, hostile documents, whole protocols."""

import json
from itertools import product
from statistics import NormalDist

import numpy as np
import pytest
from client.second_client import report_of_prefix
from scipy.stats import binom, binomtest

from skldp import HeavyHitters
from skldp._documents import canonical_text
from skldp.client import CategoryField, DeviceLedger, NumberField, Policy, PrefixDomain, PrefixTask
from skldp.collection._heavy_hitters import Round, _scores
from skldp.exceptions import BudgetExhaustedError
from skldp.mechanisms import Piecewise, RandomizedResponse

WORDS = PrefixDomain("abc", 3)
CODES = PrefixDomain.of_bits(8)
FIXED = PrefixDomain("xyz", 3, fixed=True)


def words_of(domain):
    lengths = [domain.length] if domain.fixed else range(domain.length + 1)
    return ["".join(one) for n in lengths for one in product(domain.symbols, repeat=n)]


def answer_all(hitters, values, rng):
    """The reports of people, by chosen random bytes."""
    task = PrefixTask.from_json(hitters.task.to_json())
    return [task.policy.vector({"prefix": task.domain.prefix(one, task.length)}, rng.bytes(8 * 64)) for one in values]


def carried_out(hitters, groups, seed=0):
    rng = np.random.default_rng(seed)
    for values in groups:
        for report in answer_all(hitters, values, rng):
            assert hitters.collector.add(report)
        hitters.close_round()
    return hitters


def small(**changed):
    settings = {"n_kept": 4, "n_candidates": 40, "false_positives": 1e-6} | changed
    return HeavyHitters(CODES, 8.0, "a test", **settings)


@pytest.mark.parametrize("epsilon", [float("nan"), float("inf"), True, np.True_, "1", 0.0], ids=repr)
def test_an_epsilon_is_a_finite_number(epsilon):
    with pytest.raises(ValueError, match="epsilon must be a finite number"):
        HeavyHitters(CODES, epsilon, "a test")


@pytest.mark.parametrize("domain", [WORDS, CODES, FIXED], ids=["words", "codes", "fixed"])
def test_every_word_has_one_prefix_among_the_extensions_of_its_shorter_one(domain):
    for length in range(domain.length):
        for longer in range(length + 1, domain.length + 1):
            prefixes = {word[:length] for word in words_of(domain)}
            extended = {one: list(domain.extensions(one, length, longer)) for one in prefixes}
            assert all(len(found) == domain.n_extensions(one, length, longer) for one, found in extended.items())
            every = [one for found in extended.values() for one in found]
            assert sorted(every) == sorted({word[:longer] for word in words_of(domain)})
            for word in words_of(domain):
                assert domain.prefix(word, longer) in extended[domain.prefix(word, length)]


def test_codes_are_their_binary_digits_and_back():
    assert [CODES.prefix(value, 8) for value in (0, 5, 5.0, np.int64(255))] == ["0" * 8, *["00000101"] * 2, "1" * 8]
    assert [CODES.value(CODES.prefix(value, 8)) for value in range(256)] == list(range(256))
    assert FIXED.value("xyx") == "xyx"


@pytest.mark.parametrize("value", [-1, 256, 2**70, True, 1.5, None, "0101", "01010102", ["0"], float("nan")])
def test_what_is_no_word_is_answered_for_like_any_other_that_no_candidate_begins(value):
    assert CODES.prefix(value, 4) is None
    task = small().task
    field = task.policy.fields[0]
    assert field.encode(CODES.prefix(value, task.length)) == len(task.candidates)
    assert len(task.release(value)) == task.policy.n_bytes


class HostileText(str):
    def __len__(self):
        raise RuntimeError("a value was asked for more than its type")


class HostileNumber(int):
    def __int__(self):
        raise RuntimeError("a value was asked for more than its type")


@pytest.mark.parametrize("made", [HostileText, HostileNumber, float, "\ud800".__add__])
def test_a_device_answers_for_every_word(made):
    task = small().task
    assert len(task.release(made("1"))) == task.policy.n_bytes


@pytest.mark.parametrize("domain", [WORDS, CODES, FIXED], ids=["words", "codes", "fixed"])
def test_a_client_that_was_written_from_the_document_alone_sends_the_same_reports(domain):
    hitters = HeavyHitters(domain, 2.0, "a test", n_kept=2, n_candidates=12)
    rng = np.random.default_rng(0)
    while (task := hitters.task) is not None:
        given = json.loads(task.to_json())
        for value in ["a", "cab", "abcd", "", "xyz", "00000101", 0, 5, 5.0, 255, 256, -1, 0.5, True, None]:
            words = rng.bytes(8 * 64)
            record = {"prefix": domain.prefix(value, task.length)}
            assert report_of_prefix(given, value, words) == task.policy.vector(record, words)
        close(hitters, 2)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("a", 3), "symbols"),
        (("aa", 3), "symbols"),
        ((["a", "b"], 3), "symbols"),
        (("ab", 0), "length"),
        (("ab", 257), "length"),
        (("ab", True), "length"),
        (("ab", 3, 1), "fixed"),
    ],
)
def test_a_domain_is_refused_that_is_none(arguments, rule):
    with pytest.raises(ValueError, match=rf"^{rule} must be"):
        PrefixDomain(*arguments)


@pytest.mark.parametrize("domain", [CODES, WORDS, PrefixDomain.of_bits(64), PrefixDomain("abcdefghij", 9)])
@pytest.mark.parametrize(("n_kept", "n_candidates"), [(1, 64), (5, 60), (32, 4096)])
def test_no_group_is_asked_about_more_candidates_than_were_said(domain, n_kept, n_candidates):
    hitters = HeavyHitters(domain, 1.0, "a test", n_kept=n_kept, n_candidates=n_candidates)
    assert hitters.lengths[-1] == domain.length
    assert list(hitters.lengths) == sorted(set(hitters.lengths))
    prefixes, before = 1, 0
    for length in hitters.lengths:
        n = prefixes * domain.n_extensions(domain.symbols[0] * before, before, length)
        assert n <= n_candidates
        prefixes, before = min(n, n_kept), length


def test_what_leaves_no_room_for_one_more_sign_is_refused():
    with pytest.raises(ValueError, match="prefixes by a character"):
        HeavyHitters(PrefixDomain.of_bits(32), 1.0, "a test", n_kept=32, n_candidates=63)
    with pytest.raises(ValueError, match="prefixes by a character"):
        HeavyHitters(PrefixDomain("abcdef", 4), 1.0, "a test", n_kept=1, n_candidates=5)


def close(hitters, n_kept):
    """Close a round as two reports would that keep the first candidates."""
    hitters.rounds = (*hitters.rounds, Round(hitters.task.length, 2, hitters.task.candidates[:n_kept]))
    hitters._begin()


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0, 6.0])
def test_a_report_of_any_round_costs_at_most_the_epsilon_asked_for(epsilon):
    hitters = HeavyHitters(CODES, epsilon, "a test", n_kept=2, n_candidates=20)
    while hitters.task is not None:
        assert 0.999 * epsilon < hitters.task.policy.epsilon <= epsilon
        close(hitters, 2)


def test_a_device_that_answers_two_tasks_is_charged_for_both(tmp_path):
    first = small()
    second = small()
    close(second, 4)
    ledger = DeviceLedger(tmp_path / "device.sqlite", lifetime_epsilon=12.0)
    first.task.release(7, ledger=ledger)
    with pytest.raises(BudgetExhaustedError):
        second.task.release(7, ledger=ledger)


@pytest.mark.parametrize("n", [2, 50, 3000])
@pytest.mark.parametrize("chance", [0.05, 1e-6])
def test_the_threshold_is_the_least_that_a_word_of_nobody_seldom_reaches(n, chance):
    hitters = HeavyHitters(CODES, 1.0, "a test", n_kept=4, n_candidates=64, false_positives=chance)
    law = hitters.task.policy.fields[0].law
    assert law.name == "local_hashing"
    collector = carried_out_reports(hitters, n)
    q = naive_support(law)
    each = chance / len(hitters.task.candidates)
    tails = np.append(np.cumsum(binom.pmf(np.arange(n + 1), n, q)[::-1])[::-1], 0.0)
    found = hitters._threshold(collector)
    assert tails[min(found, n + 1)] <= each * (1 + 1e-9)
    assert tails[found - 1] > each * (1 - 1e-9)


def carried_out_reports(hitters, n):
    for report in answer_all(hitters, [0] * n, np.random.default_rng(1)):
        assert hitters.collector.add(report)
    return hitters.collector


def naive_support(law):
    """How likely a report of code 0 supports code 1, from all hash functions and buckets."""
    g, wrong = law.n_buckets, law.other_count / 2**64
    both = 0.0
    for chosen in range(law.n_hashes):
        own, other = (law.bucket(chosen, code) for code in (0, 1))
        both += 1 - (g - 1) * wrong if own == other else wrong
    return both / law.n_hashes


def test_words_that_many_have_are_found_and_what_they_are_like_depends_on_no_order():
    rng = np.random.default_rng(5)
    values = np.concatenate([np.repeat([3, 200, 77], [300, 200, 100]), rng.integers(0, 256, 300)])
    hitters = carried_out(small(), [values] * len(small().lengths))
    assert {3, 200, 77} <= set(hitters.found)
    estimate = hitters.estimate()
    assert "all intervals together 95%, " in estimate.title
    assert estimate.labels[:3] == ("3", "200", "77")
    assert (np.diff(estimate.values) <= 0).all()
    everybody = hitters._last.frequencies("prefix").values[:-1]
    assert (everybody >= hitters.least_share - 1e-9).sum() == len(hitters.found)
    true = [np.mean(values == int(label)) for label in estimate.labels]
    assert ((estimate.low <= true) & (true <= estimate.high)).all()
    n_candidates = hitters._last.policy.fields[0].law.n_codes - 1
    assert estimate.level == pytest.approx(1 - 0.05 / n_candidates)
    # Of each the exact interval of its own support.
    scores = _scores(hitters._last)
    shares = scores.q + estimate.values * (scores.p - scores.q)
    for share, low, high in zip(shares, estimate.low, estimate.high, strict=True):
        k, n = round(share * hitters._last.n_reports), hitters._last.n_reports
        exact = binomtest(k, n).proportion_ci(estimate.level, "exact")
        assert (np.array(exact) - scores.q) / (scores.p - scores.q) == pytest.approx([low, high], abs=1e-9)

    # The same reports, backwards and twice.
    again, rng = small(), np.random.default_rng(0)
    for _ in small().lengths:
        reports = answer_all(again, values, rng)
        for report in [*reports[::-1], *reports]:
            again.collector.add(report)
        again.close_round()
    assert again.rounds == hitters.rounds
    np.testing.assert_array_equal(again.estimate().values, estimate.values)


def test_words_of_different_lengths_are_told_apart():
    domain = PrefixDomain("ab", 5)
    hitters = HeavyHitters(domain, 9.0, "a test", n_kept=4, n_candidates=20, false_positives=1e-6)
    assert len(hitters.lengths) > 1
    values = ["ab", "abb", "abbab", ""] * 200
    assert set(carried_out(hitters, [values] * len(hitters.lengths)).found) == {"ab", "abb", "abbab", ""}


def test_reports_of_another_round_do_not_count():
    hitters = small()
    reports = answer_all(hitters, [3] * 50, np.random.default_rng(0))
    for report in reports:
        hitters.collector.add(report)
    hitters.close_round()
    assert not hitters.collector.add(reports[0])
    assert hitters.collector.counts.foreign == 1


def test_a_round_of_fewer_than_two_reports_stays_open():
    hitters = small()
    with pytest.raises(ValueError, match="at least 2 reports"):
        hitters.close_round()
    assert hitters.rounds == ()
    with pytest.raises(ValueError, match="are closed"):
        _ = hitters.found


@pytest.mark.statistical
def test_few_words_are_found_that_nobody_has():
    """Of 60 protocols of fixed seeds, in which nobody of the last group has a candidate."""
    n_wrong = 0
    for seed in range(60):
        hitters = HeavyHitters(PrefixDomain.of_bits(12), 2.0, "a test", n_kept=8, n_candidates=256)
        rng = np.random.default_rng(seed)
        for report in answer_all(hitters, [0] * 50, rng):
            hitters.collector.add(report)
        hitters.close_round()
        assert hitters.lengths == (8, 12)
        begun = {word[:8] for word in hitters.task.candidates}
        nobody = next(code for code in range(4096) if f"{code:012b}"[:8] not in begun)
        for report in answer_all(hitters, [nobody] * 50, rng):
            hitters.collector.add(report)
        hitters.close_round()
        n_wrong += bool(hitters.found)
    assert n_wrong <= binom.ppf(0.999, 60, 0.05)


def test_closed_rounds_have_no_collector():
    hitters = carried_out(small(), [[3] * 60 + [200] * 40] * len(small().lengths))
    with pytest.raises(ValueError, match="all rounds are closed"):
        _ = hitters.collector
    with pytest.raises(ValueError, match="all rounds are closed"):
        hitters.close_round()


def changed(text, **names):
    return json.dumps(json.loads(text) | names)


@pytest.mark.parametrize("text", ["", "[]", "3", "{}", '{"a": 1, "a": 1}', "[" * 10_000])
def test_a_text_that_is_no_task_is_refused(text):
    with pytest.raises(ValueError, match=r"[Gg]ot"):
        PrefixTask.from_json(text)


def policy_of(values, **changed):
    law = RandomizedResponse(1.0, len(values)).integer_law
    return Policy("a test", (CategoryField(**({"name": "prefix", "values": values, "law": law} | changed)),))


GOOD = policy_of(("00", "01", None), unknown=None)


@pytest.mark.parametrize(
    "policy",
    [
        policy_of(("00", "01", None), unknown="00"),
        policy_of(("00", "01", None), unknown=None, name="city"),
        policy_of(("00", None, "01"), unknown=None),
        policy_of(("01", "00", None), unknown=None),
        policy_of(("00", "1", None), unknown=None),
        policy_of(("00", "02", None), unknown=None),
        policy_of(("00", 1, None), unknown=None),
        GOOD.permanent(),
        Policy("a test", (*GOOD.fields, NumberField("age", 0, 1, Piecewise(1.0).integer_law))),
        Policy("a test", (NumberField("prefix", 0, 1, Piecewise(1.0).integer_law),)),
    ],
    ids=["first", "name", "place", "order", "short", "sign", "number", "memo", "two", "kind"],
)
def test_a_policy_that_is_none_about_prefixes_is_refused(policy):
    assert PrefixTask(CODES, 2, GOOD).candidates == ("00", "01")
    with pytest.raises(ValueError, match=r"[Gg]ot"):
        PrefixTask(CODES, 2, policy)


@pytest.mark.parametrize(
    "names",
    [
        {"length": 3},
        {"length": 0},
        {"length": 9},
        {"length": True},
        {"version": True},
        {"version": 2},
        {"skldp": "policy"},
        {"more": 1},
        {"symbols": "ab"},
        {"word_length": 1},
        {"fixed": False, "length": 1},
        {"policy": {}},
        {"policy": None},
    ],
    ids=str,
)
def test_a_hostile_task_is_refused(names):
    text = PrefixTask(CODES, 2, GOOD).to_json()
    assert PrefixTask.from_json(text).to_json() == text
    with pytest.raises(ValueError, match=r"[Gg]ot"):
        PrefixTask.from_json(changed(text, **names))


def test_a_task_claims_the_epsilon_that_its_integers_give():
    task = PrefixTask(CODES, 2, GOOD)
    given = json.loads(task.to_json())
    given["policy"]["epsilon"] = "0.5"
    with pytest.raises(ValueError, match="sha256"):
        PrefixTask.from_json(canonical_text(given))


@pytest.mark.parametrize(("kept", "n_candidates"), [(4, 40), (4, 256), (40, 2_560)])
def test_groups_have_the_sizes_with_which_each_cut_is_passed_alike(kept, n_candidates):
    """One standard error above a cut that noise passes as often as a round allows, for each round."""
    hitters = small(n_kept=kept, n_candidates=n_candidates)
    shares = hitters.group_shares
    assert len(shares) == len(hitters.lengths)
    assert sum(shares) == pytest.approx(1)
    firsts = [2 ** hitters.lengths[0], *(kept * 2 ** int(step) for step in np.diff(hitters.lengths))]
    allowed = [*(kept / n for n in firsts[:-1]), 1e-6 / firsts[-1]]
    cuts = [1 + max(0.0, -NormalDist().inv_cdf(min(one, 0.5))) for one in allowed]
    np.testing.assert_allclose(np.sqrt(shares) / np.sqrt(shares[-1]), np.array(cuts) / cuts[-1])
