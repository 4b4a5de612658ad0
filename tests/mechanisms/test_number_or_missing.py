"""A number that may be missing: the law that is drawn, read out of the code, and what is estimated from it."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import OneDraw, assert_is_the_guarantee, intervals, lengths, logarithm

from skldp.domains._columns import domain_from_json
from skldp.laws._odds import log_ratio
from skldp.mechanisms import Column, FieldKey, Piecewise, RandomizedResponse, ReleaseKey, noise_from
from skldp.mechanisms._noise import Noise
from skldp.mechanisms.numeric._bounded_features import NumberOrMissing, best_mechanism
from skldp.mechanisms.numeric._unit_mechanisms import Duchi, DuchiVector, Hybrid, ThreeOutputs

WORD, LAST = 2**64, 2**64 - 1
AGE = Column(0.0, 100.0, missing="category")
# Its place in [-1, 1]; None is missing.
VALUES = {None: np.nan, -1.0: 0.0, -0.3: 35.0, 0.0: 50.0, 0.5: 75.0, 1.0: 100.0}


class DrawsInTurn(OneDraw):
    """One draw of 64 bits for the number, for what a missing one tells and for what others hide, in this order."""

    def __init__(self, number, told, hidden, whole):
        super().__init__(0)
        self.draws, self.whole = [number, told, hidden], whole

    def fill(self, buffer):
        if self.whole and len(self.draws) == 3:
            buffer[...] = self.draws.pop(0)
            return buffer
        if buffer.size and buffer.itemsize == 2:
            self.pieces, self.sizes = OneDraw(self.draws.pop(0), (16, 48)).pieces, (16, 48)
        return super().fill(buffer)


def sampled_law(law, value, whole):
    """How many of all triples of draws release each number, and None."""

    def released(*draws):
        (answer,) = law.release([[value]], DrawsInTurn(*draws, whole)).rows[0].tolist()
        return None if math.isnan(answer) else answer

    turned = 0 if whole else 2**63
    numbers = lengths(intervals(lambda draw: released(draw ^ turned, LAST, LAST), 0, WORD), WORD)
    told = lengths(intervals(lambda draw: released(0, draw, LAST) is None, 0, WORD), WORD).get(True, 0)
    hidden = lengths(intervals(lambda draw: released(0, LAST, draw) is None, 0, WORD), WORD).get(True, 0)
    # Of the last two draws one alone matters.
    assert not (told and hidden)
    missing = told + hidden
    return {None: missing * WORD} | {answer: count * (WORD - missing) for answer, count in numbers.items()}


@pytest.mark.few(2)
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 2.0, 8.0])
@pytest.mark.parametrize("name", ["duchi", "three_outputs"])
def test_the_law_that_is_drawn_is_that_of_the_guarantee(name, epsilon):
    law = NumberOrMissing.of(AGE, epsilon, name)
    laws = [sampled_law(law, value, whole=name == "three_outputs") for value in VALUES.values()]
    assert laws[0][None] == law.missing_given_missing * WORD
    assert {one[None] for one in laws[1:]} == {law.missing_given_present * WORD}
    assert law.guarantee().epsilon <= epsilon
    assert_is_the_guarantee(laws, law.guarantee().epsilon, slack=1e-8)


@pytest.mark.parametrize(
    ("unit", "told", "hidden"),
    [
        (Duchi(1.0), 2**63, 2**62),
        (Duchi(1.0), WORD - 2**40, 2**62),
        (ThreeOutputs(2.0), 2**62, 2**61),
        (ThreeOutputs(0.3), WORD - 2**50, 2**63),
        (Piecewise(1.5, lattice_bits=4), 2**63, 2**61),
        (Hybrid(2.0, lattice_bits=4), WORD - 2**58, 2**62),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, Duchi | ThreeOutputs | Piecewise | Hybrid) else str(one),
)
def test_the_epsilon_of_any_integers_is_never_below_their_worst_ratio(unit, told, hidden):
    law = NumberOrMissing(AGE, unit, told, hidden, stated=9.0)
    laws = []
    for x in (None, *np.linspace(-1, 1, 41)):
        outputs, weights = unit.output_law(0.0 if x is None else float(x))
        missing = told if x is None else hidden
        of_numbers = dict(zip(np.asarray(outputs).tolist(), (w * (WORD - missing) for w in weights), strict=True))
        laws.append({None: missing * WORD} | of_numbers)
    answers = sorted(set().union(*laws), key=str)
    ratios = [Fraction(max(o.get(a, 0) for o in laws), min(o.get(a, 0) for o in laws)) for a in answers]
    worst = float(logarithm(max(ratios)))
    assert law.exact_epsilon >= worst * (1 - 1e-14)
    if not isinstance(unit, Piecewise | Hybrid):
        assert law.exact_epsilon == pytest.approx(worst, rel=1e-9)


@pytest.mark.parametrize("unit", [Duchi(0.7), Duchi(9.0), ThreeOutputs(0.3), ThreeOutputs(1.0), ThreeOutputs(6.0)])
def test_the_loss_from_the_middle_is_that_of_the_law(unit):
    def law(x):
        return unit.output_law(x)[1]

    middle = law(0.0)
    worst = max(Fraction(w, m) for x in np.linspace(-1, 1, 21) for w, m in zip(law(float(x)), middle, strict=True))
    assert float(logarithm(worst)) * (1 - 1e-14) <= unit.loss_from_middle <= float(logarithm(worst)) * (1 + 1e-12)
    assert unit.loss_from_middle < unit.exact_epsilon


@pytest.mark.parametrize("unit", [Duchi(1.0), ThreeOutputs(2.0)])
def test_estimates_of_the_number_and_of_its_absence_have_no_bias(unit):
    law = NumberOrMissing(AGE, unit, 3 * 2**62, 2**62, stated=3.0)
    for place, value in VALUES.items():
        missing = (law.missing_given_missing if place is None else law.missing_given_present) / WORD
        outputs, weights = unit.output_law(place or 0.0)
        answers = np.append(50 + 50 * outputs, np.nan)
        chances = np.append(np.array(weights, dtype=float) / 2.0**64 * (1 - missing), missing)
        mean = chances @ law.unbiased(answers)
        np.testing.assert_allclose(mean, [50.0, 1.0] if place is None else [value, 0.0], atol=1e-9)
        spread = chances @ ((law.unbiased(answers) - mean) ** 2)
        assert spread[0] / 50**2 + spread[1] <= law.worst_variance * (1 + 1e-9)


@settings(max_examples=40, deadline=None)
@given(st.floats(1e-4, 24))
def test_what_is_chosen_keeps_to_epsilon_and_beats_a_bit_beside_a_number(epsilon):
    law = NumberOrMissing.of(AGE, epsilon)
    assert epsilon * (1 - 1e-6) <= law.guarantee().epsilon <= epsilon == law.guarantee().stated
    if epsilon > 16:
        # A bit that is nearly never wrong.
        return
    for part in (0.2, 0.35, 0.5):
        bit = RandomizedResponse(part * epsilon, 2)
        p, q = bit.support_probabilities()
        number = best_mechanism((1 - part) * epsilon, 1)[1]
        assert law.worst_variance < number.worst_variance + p * q / (p - q) ** 2


def test_more_of_epsilon_is_never_worse():
    """Whoever asks for hundreds looks whether rows come through."""
    variances = [NumberOrMissing.of(AGE, epsilon).worst_variance for epsilon in (8, 16, 24, 40, 80, 600.0, 1e6, 1e300)]
    assert variances == sorted(variances, reverse=True)
    assert variances[-1] < 1e-3
    assert NumberOrMissing.of(AGE, 600.0).guarantee().stated == 600.0


def test_a_missing_number_is_one_answer_whatever_kind_of_nan_it_was():
    law = NumberOrMissing.of(AGE, 1.0)
    payloads = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000123], dtype=np.uint64)
    rows = payloads.view(np.float64)[:, None]
    key = FieldKey(ReleaseKey(bytes(range(32))), "age")
    released = [key.release(law, row[None], ["ann"]).rows.tobytes() for row in rows]
    assert len(set(released)) == 1
    many = law.release(np.repeat(rows, 200, axis=0), Noise(bytes(32), secure=False)).rows
    patterns = many[np.isnan(many)].view(np.uint64)
    assert set(patterns.tolist()) == {np.array(np.nan).view(np.uint64).item()}
    clipped = AGE.clip(rows)
    assert clipped.n_moved == 0
    assert len({row.tobytes() for row in clipped.rows}) == 1


def test_without_noise_it_is_the_number_within_its_bounds_or_none():
    law = NumberOrMissing.of(AGE, 1.0)
    encoded = law.encode(np.array([[130.0], [np.nan], [44.0]]))
    np.testing.assert_array_equal(encoded.rows, [[100.0], [np.nan], [44.0]])
    assert encoded.n_moved == 1
    with pytest.raises(ValueError, match="infinity"):
        law.release([[np.inf], [np.nan]], noise_from())
    restored = pickle.loads(pickle.dumps(law))
    assert restored == law


def test_the_domain_has_a_document():
    for domain in (AGE, Column(0, 9, kind="integer", missing="category")):
        assert domain_from_json(domain.to_json()) == domain
    for text in (
        '{"type": "or_missing", "number": {"type": "box", "low": [0], "high": [1]}}',
        '{"type": "or_missing"}',
    ):
        with pytest.raises(ValueError, match=r"must be an interval or integers|must have the fields"):
            domain_from_json(text)
    whole = Column(0, 9, kind="integer", missing="category").clip(np.array([[2.4], [np.nan]]))
    np.testing.assert_array_equal(whole.rows, [[2.0], [np.nan]])


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: NumberOrMissing(Column(0, 1), Duchi(1.0), 9, 3, stated=1.0), "must be a Column with missing"),
        (lambda: NumberOrMissing(AGE, Duchi(1.0), 3, 3, stated=1.0), "missing_given_missing"),
        (lambda: NumberOrMissing(AGE, Duchi(1.0), 2**64, 3, stated=1.0), "missing_given_missing"),
        (lambda: NumberOrMissing(AGE, Duchi(1.0), 9, 0, stated=1.0), "missing_given_present"),
        (lambda: NumberOrMissing(AGE, DuchiVector(1.0, 2), 9, 3, stated=1.0), "multiple"),
        (lambda: NumberOrMissing.of(AGE, 0.0), "epsilon"),
        (lambda: NumberOrMissing.of(AGE, 1e-9), "at least about"),
        (lambda: NumberOrMissing.of(AGE, 1.0, "none"), "mechanism must be one of"),
    ],
)
def test_refuses_what_is_no_law(make, match):
    with pytest.raises(ValueError, match=match):
        make()


@pytest.mark.parametrize("epsilon", [math.nan, math.inf, True, np.True_, "1", -1.0], ids=repr)
def test_an_epsilon_is_a_finite_number(epsilon):
    with pytest.raises(ValueError, match="epsilon must be"):
        NumberOrMissing.of(AGE, epsilon)


def test_the_loss_of_a_number_from_none_is_rounded_up():
    """The sum of two logarithms, of which rounding to the nearest would be below for about every other law."""
    unit = Piecewise(0.5)
    for told in range(2**63, 2**63 + 50 * 2**57, 2**57):
        law = NumberOrMissing(AGE, unit, told, 2**62, stated=9.0)
        of_numbers = Fraction(log_ratio(2**64 - 2**62, 2**64 - told)) + Fraction(unit.loss_from_middle)
        assert Fraction(law.exact_epsilon) >= of_numbers
