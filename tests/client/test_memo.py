"""A policy's memo rule: the same record gives the same report, and nothing is there to be averaged."""

import itertools
import math
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from laws import THRESHOLD, binomial_pvalue, chi_square_pvalue

from skldp.client import DeviceLedger, Field, Policy
from skldp.client._memo import KeptField, _Answer, kept_report
from skldp.exceptions import BudgetExhaustedError
from skldp.mechanisms import Column, Piecewise, RandomizedResponse, ReleaseKey
from skldp.mechanisms.categorical._one_hot import UnaryEncoding
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures
from skldp.mechanisms.numeric._unit_mechanisms import Duchi, DuchiVector

SECRET = ReleaseKey(bytes(range(100, 132))[::-1])
OTHER = ReleaseKey(bytes(range(7, 231, 7)))
CITY = Field("city", Column(values=("Bonn", "Ulm", None), unknown=None), RandomizedResponse(1.0, 3).integer_law)
AGE = Field("age", Column(0.0, 100.0), Piecewise(2.0).integer_law, steps=100)
POLICY = Policy("a survey", (AGE, CITY), memo="permanent")
RECORD = {"age": 41.3, "city": "Bonn"}
COIN = Field("coin", Column(values=(False, True)), RandomizedResponse(0.5, 2).integer_law)


def answers(field, value, key=SECRET, people=range(4000)):
    """What many people answer who share a secret."""
    kept, encoded = [KeptField.of(field)], [field.encode({field.name: value})]
    whose = [b"%d" % person for person in people]
    return np.array([kept_report(kept, encoded, key, policy=bytes(32), person=one).answers[0] for one in whose])


def agree_by_chance(one, other):
    p = Fraction(2**64 - COIN.law.other_count, 2**64)
    return binomial_pvalue((one == other).sum(), one.size, float(p**2 + (1 - p) ** 2)) > THRESHOLD


def test_the_same_record_gives_the_same_report_to_the_byte():
    report = POLICY.release(RECORD, secret=SECRET)
    assert POLICY.release(dict(reversed(RECORD.items())), secret=SECRET) == report
    again = Policy.from_json(POLICY.to_json())
    assert again == POLICY
    assert again.release(RECORD, secret=ReleaseKey(bytes(range(100, 132))[::-1])) == report
    assert len(report) == POLICY.n_bytes
    assert POLICY.release(RECORD, secret=SECRET, person="ann") != report
    others = {POLICY.release({**RECORD, "age": age}, secret=SECRET) for age in range(20)}
    assert len({POLICY.read(one).report_id for one in others}) == 20


def test_jitter_buys_no_second_report():
    tremble = 41.3 + np.random.default_rng(0).uniform(-1e-9, 1e-9, 500)
    assert len({POLICY.release({"age": age, "city": "Ulm"}, secret=SECRET) for age in tremble}) == 1
    beyond = {POLICY.release({"age": age, "city": "Ulm"}, secret=SECRET) for age in (100, 101.5, 1e300)}
    assert len(beyond) == 1


def test_another_purpose_draws_nothing_anew():
    """Keyed on the text, each new purpose, expiry or unit would be a new release of the same values."""
    units = replace(AGE, columns=replace(AGE.column, unit="years", missing=50.0))
    city = replace(CITY, columns=replace(CITY.column, unknown="Ulm"))
    for other in (
        Policy("next month", (AGE, CITY), "9999-12-31T23:59:59Z", memo="permanent"),
        Policy("a survey", (city, units), memo="permanent"),
    ):
        given = other.read(other.release(RECORD, secret=SECRET))
        first = POLICY.read(POLICY.release(RECORD, secret=SECRET))
        assert given.answers == first.answers
        # But it is a report of its own, which its collector takes.
        assert given.report_id != first.report_id


def test_a_changed_value_changes_no_other_fields_answer():
    for city in CITY.column.values:
        ages = {POLICY.read(POLICY.release({"age": 3, "city": city}, secret=SECRET)).answers["age"]}
        assert len(ages) == 1


@pytest.mark.parametrize(
    "other",
    [
        replace(COIN, name="coins"),
        replace(COIN, columns=Column(values=(True, False))),
        replace(COIN, columns=Column(values=(False, 1))),
        replace(COIN, law=replace(COIN.law, other_count=COIN.law.other_count - 1)),
    ],
)
def test_other_fields_and_laws_share_no_noise(other):
    first, second = answers(COIN, False), answers(other, False)
    # Of a list in another order, false has another code.
    assert agree_by_chance(first, second ^ other.column.encode(False))


def test_the_noise_follows_the_law():
    law = CITY.law
    counts = np.bincount(answers(CITY, "Ulm"), minlength=3)
    kept = 1 - 2 * law.other_count / 2**64
    assert chi_square_pvalue(counts, [(1 - kept) / 2, kept, (1 - kept) / 2]) > THRESHOLD


def test_a_draw_of_many_words_repeats_none_of_them():
    bits = Field("bits", Column(values=tuple(range(40))), UnaryEncoding(0.5, 40, "sue").integer_law)
    given = np.array([[int(bit) for bit in f"{answer:040b}"] for answer in answers(bits, 39, people=range(500))])[
        :, :32
    ]
    ones = bits.law.other_count / 2**64
    alike = ones**2 + (1 - ones) ** 2
    for apart in (8, 16, 24):
        pairs = given[:, :-apart] == given[:, apart:]
        assert binomial_pvalue(pairs.sum(), pairs.size, alike) > THRESHOLD


@pytest.mark.parametrize("steps", [1, 3])
def test_steps_leave_the_mean_where_it_was(steps):
    """Of both answers, over steps and noise: the chance of the number itself, and not that of a step."""
    field = Field("x", Column(-1.0, 1.0), Duchi(3.0).integer_law, steps=steps)
    up = Fraction(field.law.slope) * Fraction(0.21) / 2**64 + Fraction(1, 2)
    given = answers(field, 0.21, people=range(20_000))
    assert binomial_pvalue(given.sum(), given.size, float(up)) > THRESHOLD
    nearest = Fraction(field.law.slope) * Fraction(1 if steps == 1 else 1 / 3) / 2**64 + Fraction(1, 2)
    assert binomial_pvalue(given.sum(), given.size, float(nearest)) < THRESHOLD


class TestEpsilons:
    """Per report, of a lifetime, and what neither of them counts; over all answers, in whole numbers of 2^64."""

    @staticmethod
    def law(values, epsilon=1.0):
        """The chance of all answers to a series of values, each different one of which is answered once."""
        response = RandomizedResponse(epsilon, 3).integer_law
        keep, other = 2**64 - 2 * response.other_count, response.other_count
        different = list(dict.fromkeys(values))
        law = Counter()
        for drawn in itertools.product(range(3), repeat=len(different)):
            answer = dict(zip(different, drawn, strict=True))
            law[tuple(answer[one] for one in values)] += math.prod(
                Fraction(keep if code == one else other, 2**64) for one, code in answer.items()
            )
        return response.epsilon, law

    @staticmethod
    def loss(one, other):
        return max(
            math.inf if not other[answer] else math.log(chance / other[answer]) for answer, chance in one.items()
        )

    def test_a_lifetime_of_one_value_costs_what_one_report_does(self):
        epsilon, one = self.law([0] * 12)
        assert self.loss(one, self.law([1] * 12)[1]) == pytest.approx(epsilon, rel=1e-12)

    @pytest.mark.parametrize("k", [1, 2, 3])
    def test_k_values_cost_k_times_as_much_and_no_less(self, k):
        series = [[0, 0, 0], [0, 1, 0], [0, 1, 2]][k - 1]
        turned = [(value + 1) % 3 for value in series]
        epsilon, one = self.law(series)
        assert self.loss(one, self.law(turned)[1]) == pytest.approx(k * epsilon, rel=1e-12)

    def test_the_ledger_charges_each_value_once(self, tmp_path):
        ledger = DeviceLedger(tmp_path / "mine", lifetime_epsilon=100.0)
        for _ in range(5):
            POLICY.release(RECORD, secret=SECRET, ledger=ledger)
        assert ledger.spent == pytest.approx(POLICY.epsilon)
        assert ledger.spent >= POLICY.epsilon
        renamed = Policy("next month", POLICY.fields, memo="permanent")
        renamed.release(RECORD, secret=SECRET, ledger=DeviceLedger(tmp_path / "mine", lifetime_epsilon=100.0))
        assert ledger.spent == pytest.approx(POLICY.epsilon)
        POLICY.release({**RECORD, "city": "Ulm"}, secret=SECRET, ledger=ledger)
        assert ledger.spent == pytest.approx(POLICY.epsilon + CITY.epsilon)
        assert ledger.reports() == {POLICY.sha256: 6, renamed.sha256: 1}
        # What goes back to an earlier value was charged; a new secret is a new release.
        POLICY.release(RECORD, secret=SECRET, ledger=ledger)
        assert ledger.spent == pytest.approx(POLICY.epsilon + CITY.epsilon)
        POLICY.release(RECORD, secret=OTHER, ledger=ledger)
        assert ledger.spent == pytest.approx(2 * POLICY.epsilon + CITY.epsilon)

    def test_what_the_limit_does_not_admit_is_neither_charged_nor_remembered(self, tmp_path):
        ledger = DeviceLedger(tmp_path / "mine", lifetime_epsilon=POLICY.epsilon + 1e-9)
        report = POLICY.release(RECORD, secret=SECRET, ledger=ledger)
        for _ in range(2):
            with pytest.raises(BudgetExhaustedError, match="This report costs epsilon 1, but only") as refusal:
                POLICY.release({**RECORD, "city": "Ulm"}, secret=SECRET, ledger=ledger)
            assert "Ulm" not in str(refusal.value)
        assert ledger.spent == pytest.approx(POLICY.epsilon)
        assert ledger.reports() == {POLICY.sha256: 1}
        # A lower limit takes back nothing that was said.
        lower = DeviceLedger(tmp_path / "mine", lifetime_epsilon=0.1)
        assert POLICY.release(RECORD, secret=SECRET, ledger=lower) == report

    def test_the_file_holds_no_value(self, tmp_path):
        POLICY.release(RECORD, secret=SECRET, ledger=DeviceLedger(tmp_path / "mine", lifetime_epsilon=9.0))
        content = (tmp_path / "mine").read_bytes()
        assert b"Bonn" not in content
        assert b"41.3" not in content


@pytest.mark.parametrize(
    ("policy", "secret"),
    [(POLICY, None), (replace(POLICY, fields=(CITY,), memo="fresh"), SECRET), (POLICY, bytes(32))],
)
def test_a_rule_and_a_secret_that_do_not_fit_are_refused_before_anything(policy, secret, tmp_path):
    ledger = DeviceLedger(tmp_path / "mine", lifetime_epsilon=9.0)
    with pytest.raises(ValueError, match="secret must be a ReleaseKey for the memo rule 'permanent'"):
        policy.release({"nothing": 3}, secret=secret, ledger=ledger)
    with pytest.raises(TypeError, match="An id must be an integer or a string"):
        POLICY.release({"nothing": 3}, secret=SECRET, person=1.5)
    assert ledger.spent == 0


def test_a_device_still_needs_numpy_and_cryptography_alone(tmp_path):
    POLICY.save(tmp_path / "policy.json")
    ReleaseKey.create(tmp_path / "mine.key")
    code = f"""
import sys
from skldp.client import Policy
from skldp.mechanisms import ReleaseKey
policy, secret = Policy.load({str(tmp_path / "policy.json")!r}), ReleaseKey.from_file({str(tmp_path / "mine.key")!r})
print(policy.release({RECORD!r}, secret=secret).hex())
print(sorted({{"sklearn", "scipy", "joblib", "pandas"}} & set(sys.modules)))
"""
    told = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(2)]
    assert told[0].stdout == told[1].stdout
    assert told[0].stdout.endswith("\n[]\n")


class TestSeveralNumbers:
    """Numbers that are answered for together are one value."""

    COLUMNS = tuple(Column(0.0, 10.0, kind="integer" if name == "c" else "number", name=name) for name in "abc")
    SOME = Field(
        "some",
        COLUMNS,
        BoundedFeatures(Duchi(1.0), (0.0,) * 3, (1.0,) * 3, n_sampled=2, stated=2.0).integer_law,
        steps=16,
    )
    SIGNS = Field("signs", COLUMNS, DuchiVector(1.0, 3).integer_law, steps=16)
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
        """A number at 21 per cent counts as the upper bound for 21 people in a hundred."""
        columns = self.COLUMNS[:2]
        field = Field("both", columns, replace(self.SIGNS.law, n_values=2), steps=1)
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
        whole = Field("c", self.COLUMNS[2:], replace(self.SIGNS.law, n_values=1))
        assert Policy("whole", (whole,), memo="permanent").permanent().fields == (whole,)
        bare = replace(self.SOME, steps=None)
        with pytest.raises(ValueError, match="numbers other than integers must have"):
            Policy("bare", (bare,), memo="permanent")
        assert Policy("bare", (bare,)).permanent(steps=16).fields == (self.SOME,)
        with pytest.raises(ValueError, match="`steps` must be None under the memo rule"):
            Policy("fresh", (self.SOME,))
        with pytest.raises(ValueError, match="steps must be a whole number"):
            replace(self.SOME, steps=0)
