"""Laws of two steps on a device: a permanent answer by the secret, and a report of it that is the wave's own."""

import json
from dataclasses import replace

import numpy as np
import pytest
from laws import THRESHOLD, binomial_pvalue

from skldp import Collector
from skldp._documents import canonical_text, digest
from skldp.client import CategoryField, DeviceLedger, NumberColumn, NumberField, NumbersField, Policy, ReleaseKey
from skldp.client._memo import _Answer, kept_report
from skldp.exceptions import BudgetExhaustedError, LedgerError
from skldp.laws._release_key import person_bytes
from skldp.mechanisms import (
    Duchi,
    DuchiVector,
    RandomizedResponse,
    longitudinal_categories,
    longitudinal_histogram,
    longitudinal_mean,
)
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures

SECRET = ReleaseKey(bytes(range(100, 132))[::-1])
PAGES = tuple("abcdef")


def page(method="hashing", lifetime=2.0, report=1.0, values=PAGES):
    return CategoryField(f"page by {method}", values, longitudinal_categories(lifetime, report, len(values), method))


HOURS = NumberField("hours", 0.0, 24.0, longitudinal_mean(2.0, 1.0))
AGE = NumberField("age", 0.0, 100.0, longitudinal_histogram(2.0, 1.0, 8, 3))
FIELDS = (HOURS, AGE, page(), page("sue"), page("krr"))
POLICY = Policy("every week", FIELDS, memo="permanent")
RECORD = {"hours": 7.5, "age": 41.3} | {field.name: "c" for field in FIELDS[2:]}


def first_report(policy, record, person, wave, secret=SECRET):
    """Return the report that a device with an empty account sends, without writing one."""
    own = bytes.fromhex(policy.sha256)
    whose = b"" if person is None else person_bytes(person)
    kept = kept_report(policy._kept, policy._encode(record), secret, policy=own, person=whose, wave=wave)
    return policy._pack(kept.report_id, kept.answers)


def answers(policy, record, person, wave):
    return policy.read(first_report(policy, record, person, wave)).answers


@pytest.fixture
def ledger(tmp_path):
    return DeviceLedger(tmp_path / "mine", lifetime_epsilon=1000.0)


def forged(change):
    document = json.loads(POLICY.to_json())
    change(document)
    return canonical_text(document | {"sha256": digest(document)})


def test_a_policy_says_both_epsilons_and_the_same_law_comes_back():
    document = json.loads(POLICY.to_json())
    assert POLICY.epsilon == pytest.approx(5.0, rel=1e-9)
    assert POLICY.lifetime_epsilon == pytest.approx(10.0, rel=1e-9)
    assert (document["epsilon"], document["lifetime_epsilon"]) == (repr(POLICY.epsilon), repr(POLICY.lifetime_epsilon))
    assert [one["lifetime_epsilon"] for one in document["fields"]] == [repr(one.lifetime_epsilon) for one in FIELDS]
    assert Policy.from_json(POLICY.to_json()) == POLICY
    # Of one step, a lifetime of one value costs what a report does, and nothing else is said.
    one = Policy("x", (NumberField("x", 0, 1, Duchi(1.0).integer_law, steps=4),), memo="permanent")
    assert one.lifetime_epsilon == one.epsilon
    assert "lifetime_epsilon" not in one.to_json()


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda one: one.update(lifetime_epsilon="1.0"), "stated epsilons of a policy must be those of its integers"),
        (lambda one: one.pop("lifetime_epsilon"), "stated epsilons of a policy must be those of its integers"),
        (
            lambda one: one["fields"][0].update(lifetime_epsilon="0.5"),
            "stated epsilons of a policy must be those of its integers",
        ),
        (
            lambda one: one["fields"][2].pop("lifetime_epsilon"),
            "stated epsilons of a policy must be those of its integers",
        ),
        (
            lambda one: one["fields"][0]["law"].update(first_count="5"),
            "stated epsilons of a policy must be those of its integers",
        ),
        (lambda one: one["fields"][0]["law"].update(second_count=str(2**63)), "give the true answer more often"),
        (lambda one: one["fields"][1]["law"].update(n_chosen="9"), "choose some of 2 to"),
        (lambda one: one["fields"][0].update(steps="4"), "A law of two steps rounds numbers itself"),
        (lambda one: one.update(memo="fresh"), "Laws of two steps must have the memo rule 'permanent'"),
        (lambda one: one["fields"][0].update(law=one["fields"][4]["law"]), "law of a number must be one for"),
    ],
    ids=range(10),
)
def test_a_forged_policy_is_refused_though_its_digest_fits(change, rule):
    with pytest.raises(ValueError, match=rule):
        Policy.from_json(forged(change))


def test_a_wave_asked_again_is_the_same_to_the_byte_and_the_next_one_is_another(ledger):
    def release(wave, **more):
        return POLICY.release(RECORD, secret=SECRET, wave=wave, ledger=ledger, **more)

    first = release("monday")
    assert first == first_report(POLICY, RECORD, None, "monday")
    assert release("monday") == first
    assert Policy.from_json(POLICY.to_json()).release(RECORD, secret=SECRET, wave="monday", ledger=ledger) == first
    others = [release(f"week {i}") for i in range(40)]
    assert len({POLICY.read(one).report_id for one in (first, *others)}) == 41
    assert len({tuple(POLICY.read(one).answers.values()) for one in others}) > 20
    assert release("monday", person="ann") != first


CHANGED = {**RECORD, "hours": 1.0, "age": 99.0} | {field.name: "f" for field in FIELDS[2:]}


@pytest.mark.parametrize("record", [RECORD, CHANGED, {}, {"hours": object()}], ids=["same", "changed", "none", "bad"])
def test_a_wave_asked_again_does_not_show_whether_a_value_changed(record, ledger):
    """Two answers of one wave differ only where the value changed: a likelihood ratio without bound."""
    first = POLICY.release(RECORD, secret=SECRET, wave="monday", ledger=ledger)
    spent, reports = ledger.spent, ledger.reports()
    again = DeviceLedger(ledger.path, lifetime_epsilon=1000.0)
    assert POLICY.release(record, secret=SECRET, wave="monday", ledger=again) == first
    # Another secret, of a device that was set up anew, is no other report.
    assert POLICY.release(record, secret=ReleaseKey(bytes(range(9, 41))[::-1]), wave="monday", ledger=again) == first
    assert (again.spent, again.reports()) == (spent, reports)


def test_a_report_is_on_the_disk_before_it_is_returned(ledger, monkeypatch):
    """A crash between both sends the stored report later, whatever the value is by then."""
    stored, keep = [], DeviceLedger._keep_wave
    monkeypatch.setattr(
        DeviceLedger, "_keep_wave", lambda self, *arguments: _crash_after(keep, stored, self, arguments)
    )
    with pytest.raises(KeyboardInterrupt):
        POLICY.release(RECORD, secret=SECRET, wave="monday", ledger=ledger)
    monkeypatch.undo()
    assert [POLICY.release(CHANGED, secret=SECRET, wave="monday", ledger=ledger)] == stored


def _crash_after(keep, stored, ledger, arguments):
    stored.append(keep(ledger, *arguments))
    raise KeyboardInterrupt


def test_nothing_is_sent_where_the_account_cannot_be_written(tmp_path):
    with pytest.raises(LedgerError):
        POLICY.release(RECORD, secret=SECRET, wave="a", ledger=DeviceLedger(tmp_path, lifetime_epsilon=1000.0))
    with pytest.raises(ValueError, match="need a ledger, which stores the report of each wave"):
        POLICY.release(RECORD, secret=SECRET, wave="a")


def test_a_wave_that_was_not_admitted_stays_without_a_report(tmp_path):
    """A report that came later would show that the value changed back to one that was charged before."""
    ledger = DeviceLedger(tmp_path / "mine", lifetime_epsilon=POLICY.lifetime_epsilon * 1.001)
    POLICY.release(RECORD, secret=SECRET, wave="a", ledger=ledger)
    for record in (CHANGED, RECORD, CHANGED):
        with pytest.raises(BudgetExhaustedError):
            POLICY.release(record, secret=SECRET, wave="b", ledger=ledger)
    assert POLICY.release(RECORD, secret=SECRET, wave="c", ledger=ledger)
    assert ledger.reports() == {POLICY.sha256: 2}


def test_one_wave_of_two_policies_is_two_waves():
    """With one noise for both, reports of two purposes would differ only where the value changed between them."""
    policy = Policy("one purpose", (page("krr", 8.0, 0.2, ("no", "yes")),), memo="permanent")
    other, n = replace(policy, purpose="another"), 2000
    flip = policy.fields[0].law.second_count / 2**64
    alike = sum(
        answers(policy, {"page by krr": "no"}, i, "a") == answers(other, {"page by krr": "no"}, i, "a")
        for i in range(n)
    )
    assert binomial_pvalue(alike, n, flip**2 + (1 - flip) ** 2) > THRESHOLD


def test_neither_id_nor_size_depends_on_the_values():
    one, other = (first_report(POLICY, record, None, "monday") for record in (RECORD, CHANGED))
    assert one != other
    assert len(one) == len(other)
    assert POLICY.read(one).report_id == POLICY.read(other).report_id
    both = Policy("both", (page("krr"), NumberField("x", 0, 9, Duchi(1.0).integer_law, whole=True)), memo="permanent")
    records = ({"page by krr": value, "x": x} for value, x in (("a", 3), ("b", 3), ("b", 4)))
    assert len({both.read(first_report(both, one, None, "monday")).report_id for one in records}) == 1


@pytest.mark.parametrize("order", [1, -1])
def test_a_collector_counts_the_first_report_of_an_id_whatever_it_answers(order):
    """Any rule that looks at the answers moves the estimate: the smaller of two once gave a share of 1.21."""
    one, other = [first_report(POLICY, record, None, "monday") for record in (RECORD, CHANGED)][::order]
    together, first, second = Collector(POLICY), Collector(POLICY), Collector(POLICY)
    together.add(one)
    together.add(other)
    first.add(one)
    second.add(other)
    assert together.counts.doubled == 1
    assert together.to_frame().equals(first.to_frame())
    assert first.merge(second).to_frame().equals(first.to_frame())
    assert second.merge(first).to_frame().equals(second.to_frame())


def test_jitter_and_moves_that_nobody_sees_change_nothing():
    tremble = 7.5 + np.random.default_rng(0).uniform(-1e-9, 1e-9, 200)
    policy = Policy("numbers", (HOURS, AGE), memo="permanent")
    ages = np.linspace(26, 37, 200)
    given = {
        first_report(policy, {"hours": hours, "age": age}, None, "a") for hours, age in zip(tremble, ages, strict=True)
    }
    assert len(given) == 1


@pytest.mark.few(1)
@pytest.mark.parametrize("field", FIELDS[2:], ids=lambda field: field.name)
def test_averaging_over_waves_finds_the_permanent_answer_and_no_more(field):
    """Forty reports a person: by the second step alone, each would tell its value."""
    steep = page(field.name.removeprefix("page by "), 1.0, 0.9, ("no", "yes"))
    policy = Policy("asked for ever", (steep,), memo="permanent")
    law, n = steep.law, 200
    told = []
    for person in range(n):
        given = [answers(policy, {steep.name: "yes"}, person, f"{i}")[steep.name] for i in range(40)]
        if hasattr(law, "hashing"):
            hashes = {one // law.n_buckets for one in given}
            assert len(hashes) == 1
            own = law.hashing.bucket(hashes.pop(), 1)
            given = [one % law.n_buckets == own for one in given]
        elif "sue" in steep.name:
            given = [one & 1 for one in given]
        told.append(np.mean(given) > 0.5)
    kept = 1 - law.first_count * (law.n_each - 1) / 2**64
    assert binomial_pvalue(sum(told), n, kept) > THRESHOLD
    assert np.mean(told) < 0.85


def test_two_waves_have_the_permanent_answer_in_common_and_no_noise():
    policy = Policy("two waves", (page("krr", 2.0, 1.0, ("no", "yes")),), memo="permanent")
    law, n = policy.fields[0].law, 4000
    one, other = (
        np.array([answers(policy, {"page by krr": "no"}, i, wave)["page by krr"] for i in range(n)]) for wave in "ab"
    )
    flip = law.second_count / 2**64
    assert binomial_pvalue((one == other).sum(), n, flip**2 + (1 - flip) ** 2) > THRESHOLD
    # And both together are as likely to be right as one report by both steps.
    assert binomial_pvalue((one == 0).sum(), n, law.support[0]) > THRESHOLD


def test_a_change_within_a_wave_is_blurred_anew():
    """With one blur for both, the difference of two reports would be that of the permanent answers."""
    policy = Policy("twice", (page("sue", 8.0, 0.2, ("no", "yes")),), memo="permanent")
    law, n = policy.fields[0].law, 2000
    one, other = (
        np.array([answers(policy, {"page by sue": value}, i, "a")["page by sue"] for i in range(n)])
        for value in ("no", "yes")
    )
    first, second = law.first_count / 2**64, law.second_count / 2**64
    kept_alike, blurred_alike = 2 * first * (1 - first), second**2 + (1 - second) ** 2
    alike = kept_alike * blurred_alike + (1 - kept_alike) * (1 - blurred_alike)
    for place in (0, 1):
        assert binomial_pvalue(((one ^ other) >> place & 1 == 0).sum(), n, alike) > THRESHOLD


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((page("krr", 8.0, 0.2, ("no", "yes")), "a"), (page("krr", 8.0, 0.2, ("no", "yes")), "b")),
        ((page("krr", 8.0, 0.2, ("no", "yes")), "a"), (page("krr", 8.1, 0.2, ("no", "yes")), "a")),
        ((page(), "a"), (page(), "b")),
        ((page(), "a"), (page("hashing", 2.1), "a")),
    ],
    ids=["fields", "laws", "hashes of fields", "hashes of laws"],
)
def test_what_is_chosen_once_and_the_second_step_are_a_fields_and_a_laws_own(one, other):
    """Permanent answers to one value are nearly always alike here, and what is drawn beside them must not be."""
    n, given, values = 2000, [], []
    for field, name in (one, other):
        policy = Policy("x", (replace(field, name=name),), memo="permanent")
        given.append(np.array([answers(policy, {name: field.values[0]}, i, "w")[name] for i in range(n)]))
        values.append(field.law.n_each if len(field.values) > 2 else 1)
    chosen, other_chosen = (answer // size for answer, size in zip(given, values, strict=True))
    if values[0] > 1:
        alike = 1 / one[0].law.hashing.n_hashes
    else:
        (p, q), (r, s) = (field.law.support for field, _ in (one, other))
        alike = p * r + q * s
    assert binomial_pvalue((chosen == other_chosen).sum(), n, alike) > THRESHOLD


class TestLedger:
    def test_the_first_report_pays_for_a_lifetime_and_the_next_ones_for_nothing(self, tmp_path):
        ledger = DeviceLedger(tmp_path / "mine", lifetime_epsilon=100.0)
        for wave in "abcde":
            POLICY.release(RECORD, secret=SECRET, wave=wave, ledger=ledger)
        assert POLICY.lifetime_epsilon <= ledger.spent < POLICY.lifetime_epsilon * (1 + 1e-9)
        assert ledger.reports() == {POLICY.sha256: 5}

    def test_a_value_that_changes_all_the_time_has_so_many_permanent_answers(self, tmp_path):
        ledger = DeviceLedger(tmp_path / "mine", lifetime_epsilon=100.0)
        policy = Policy("numbers", (HOURS, AGE), memo="permanent")
        for i in range(100):
            policy.release({"hours": 0.24 * i, "age": i}, secret=SECRET, wave=str(i), ledger=ledger)
        most = 2 * HOURS.lifetime_epsilon + 4 * AGE.lifetime_epsilon
        assert most <= ledger.spent < most * (1 + 1e-9)

    def test_what_the_limit_does_not_admit_is_not_sent(self, tmp_path):
        ledger = DeviceLedger(tmp_path / "mine", lifetime_epsilon=POLICY.lifetime_epsilon * 0.999)
        # One report alone would spend less, and the next one what is left.
        assert POLICY.epsilon < ledger.lifetime_epsilon
        with pytest.raises(BudgetExhaustedError):
            POLICY.release(RECORD, secret=SECRET, wave="a", ledger=ledger)
        assert ledger.spent == 0


@pytest.mark.parametrize("wave", [None, "", 3])
def test_a_wave_is_needed_before_anything_is_looked_at(wave, tmp_path):
    ledger = DeviceLedger(tmp_path / "mine", lifetime_epsilon=100.0)
    with pytest.raises(ValueError, match="wave must be a non-empty str"):
        POLICY.release({"nothing": 3}, secret=SECRET, wave=wave, ledger=ledger)
    assert ledger.spent == 0


def test_a_wave_is_for_laws_of_two_steps_alone():
    city = CategoryField("city", ("Bonn", "Ulm"), RandomizedResponse(1.0, 2).integer_law)
    for policy, secret in ((Policy("x", (city,), memo="permanent"), SECRET), (Policy("x", (city,)), None)):
        with pytest.raises(ValueError, match="wave must be a non-empty str"):
            policy.release({"city": "Bonn"}, secret=secret, wave="a")
    with pytest.raises(ValueError, match="must have the memo rule 'permanent'"):
        Policy("fresh", FIELDS)
    with pytest.raises(ValueError, match="rounds numbers itself"):
        replace(HOURS, steps=3)
    # Making it permanent gives it no steps.
    assert Policy("x", FIELDS, memo="permanent").permanent().fields == FIELDS


def test_estimates_of_waves_have_intervals():
    """Of 600 people by one secret: fixed, so that five standard errors are no chance."""
    collector, rng = Collector(POLICY), np.random.default_rng(1)
    ages, hours = rng.uniform(20, 60, 600), rng.uniform(0, 12, 600)
    for i in range(600):
        record = {"hours": hours[i], "age": ages[i]} | {field.name: PAGES[i % 3] for field in FIELDS[2:]}
        collector.add(first_report(POLICY, record, i, "monday"))
    mean = collector.mean("hours")
    assert abs(mean.values[0] - 6) < 5 * mean.standard_errors[0]
    shares = collector.histogram("age")
    assert shares.labels[:2] == ("[0, 12.5)", "[12.5, 25)")
    truth = np.histogram(ages, np.linspace(0, 100, 9))[0] / 600
    assert (np.abs(shares.values - truth) < 5 * shares.standard_errors).all()
    for field in FIELDS[2:]:
        found = collector.frequencies(field.name)
        assert (np.abs(found.values - np.repeat([1 / 3, 0], 3)) < 5 * found.standard_errors).all()
    halves = collector.histogram("age", bins=2)
    np.testing.assert_allclose(halves.values, shares.values.reshape(2, 4).sum(axis=1))
    np.testing.assert_allclose(collector.histogram("age", bins=[50]).values, halves.values)
    (middle,) = collector.quantiles("age", [0.5]).values
    assert 25 < middle < 60
    assert collector.histogram("age", consistent="likelihood").values.sum() == pytest.approx(1)
    for bins in (3, [40], 0, "two", [50, 25]):
        with pytest.raises(ValueError, match="bins must be unions of the 8 buckets"):
            collector.histogram("age", bins=bins)
    with pytest.raises(ValueError, match="answers without bias"):
        collector.mean("age")
    with pytest.raises(ValueError, match="Distributions need mechanism='square_wave'"):
        collector.histogram("hours")
    assert len(collector.mean("hours", where={"age": (25.0, 50.0)}).values) == 1
    frame = collector.to_frame()
    assert set(frame["page by krr"]) <= set(PAGES)
    assert frame["page by sue=a"].dtype == bool
    assert "page by hashing" in collector.page()


class TestSeveralNumbers:
    """Numbers that are answered for together are one value."""

    COLUMNS = tuple(NumberColumn(name, 0.0, 10.0, whole=name == "c") for name in "abc")
    SOME = NumbersField(
        "some",
        COLUMNS,
        BoundedFeatures(Duchi(1.0), (0.0,) * 3, (1.0,) * 3, n_sampled=2, stated=2.0).integer_law,
        steps=16,
    )
    SIGNS = NumbersField("signs", COLUMNS, DuchiVector(1.0, 3).integer_law, steps=16)
    RECORD = {"a": 3.3, "b": 9.1, "c": 4}

    @pytest.mark.parametrize("field", [SOME, SIGNS], ids=lambda field: field.name)
    def test_they_are_the_same_again_and_another_value_is_drawn_anew(self, field, tmp_path):
        policy = Policy("numbers", (field,), memo="permanent")
        assert Policy.from_json(policy.to_json()) == policy
        ledger = DeviceLedger(tmp_path / "mine", lifetime_epsilon=100.0)
        report = policy.release(self.RECORD, secret=SECRET, ledger=ledger)
        assert policy.release(self.RECORD, secret=SECRET, ledger=ledger) == report
        tremble = {**self.RECORD, "a": 3.3 + 1e-9, "b": 9.1 - 1e-9}
        assert policy.release(tremble, secret=SECRET, ledger=ledger) == report
        assert ledger.spent == pytest.approx(policy.epsilon)
        policy.release({**self.RECORD, "c": 5}, secret=SECRET, ledger=ledger)
        assert ledger.spent == pytest.approx(2 * policy.epsilon)
        several = {policy.release({**self.RECORD, "c": c}, secret=SECRET)[25:] for c in range(11)}
        assert len(several) > 3

    def test_each_number_has_a_threshold_of_its_own_and_no_bias(self):
        """Of one step, a number at 21 per cent counts as the upper bound for 21 people in a hundred."""
        columns = self.COLUMNS[:2]
        field = NumbersField("both", columns, replace(self.SIGNS.law, n_values=2), steps=1)
        policy = Policy("numbers", (field,), memo="permanent")
        (kept,) = policy._kept
        ends = np.array(
            [_Answer(kept, SECRET, b"%d" % i)._stepped(field.encode({"a": 2.1, "b": 2.1})) for i in range(4000)]
        )
        assert set(ends.reshape(-1).tolist()) == {-1.0, 1.0}
        for column in ends.T:
            assert binomial_pvalue((column > 0).sum(), 4000, 0.21) > THRESHOLD
        assert binomial_pvalue((ends[:, 0] == ends[:, 1]).sum(), 4000, 0.21**2 + 0.79**2) > THRESHOLD

    def test_whole_numbers_keep_their_places_and_others_need_steps(self):
        whole = NumbersField("c", self.COLUMNS[2:], replace(self.SIGNS.law, n_values=1))
        assert Policy("whole", (whole,), memo="permanent").permanent().fields == (whole,)
        bare = replace(self.SOME, steps=None)
        with pytest.raises(ValueError, match="numbers other than integers must have"):
            Policy("bare", (bare,), memo="permanent")
        assert Policy("bare", (bare,)).permanent(steps=16).fields == (self.SOME,)
        with pytest.raises(ValueError, match="`steps` must be None under the memo rule"):
            Policy("fresh", (self.SOME,))
        with pytest.raises(ValueError, match="steps must be a whole number"):
            replace(self.SOME, steps=0)


@pytest.mark.slow
def test_what_a_device_has_no_room_for_is_refused():
    """Each field alone is a law: of thirty-three together, a report would take a stranger's phone seconds."""
    field = CategoryField("bits", tuple(range(4096)), longitudinal_categories(2.0, 1.0, 4096, "sue"))
    several = tuple(replace(field, name=f"bits {i}") for i in range(33))
    with pytest.raises(ValueError, match="at most 131072 bits of answers"):
        Policy("bits", several, memo="permanent")


def test_secrets_of_two_devices_share_no_noise():
    policy = Policy("two", (page("krr", 0.02, 0.01, ("no", "yes")),), memo="permanent")

    def of(seed):
        key = ReleaseKey(np.random.default_rng(seed).bytes(32))
        given = (first_report(policy, {"page by krr": "no"}, i, "a", key) for i in range(2000))
        return np.array([policy.read(one).answers["page by krr"] for one in given])

    own = policy.fields[0].law.support[0]
    assert binomial_pvalue((of(1) == of(2)).sum(), 2000, own**2 + (1 - own) ** 2) > THRESHOLD
