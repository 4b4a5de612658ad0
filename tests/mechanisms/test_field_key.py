"""Releases that are the same again: the attacks on them, each of which must fail, and their law."""

import os
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest
from laws import THRESHOLD, binomial_pvalue, chi_square_pvalue, ks_pvalue

from skldp.domains._columns import Columns
from skldp.mechanisms import Column, FieldKey, Piecewise, PrivUnit, RandomizedResponse, ReleaseKey
from skldp.mechanisms._field_key import law_text
from skldp.mechanisms._record import MixedRecord
from skldp.mechanisms.categorical._one_hot import OneHotRandomizedResponse, UnaryEncoding
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures
from skldp.mechanisms.numeric._unit_mechanisms import Duchi, Hybrid, ThreeOutputs
from skldp.mechanisms.vector._multivariate_laplace import MultivariateLaplace
from skldp.mechanisms.vector._privunit import PrivUnitBall

SECRET = bytes(range(100, 132))[::-1]
KEY = FieldKey(ReleaseKey(SECRET), "mood")
PEOPLE = range(20_000)
OF_NUMBERS = [
    *(kind(1.0) for kind in (Duchi, ThreeOutputs, Piecewise, Hybrid)),
    BoundedFeatures(Duchi(1.0), (-1.0, 0.0), (3.0, 1.0), n_sampled=1, stated=2.0),
    BoundedFeatures(Piecewise(1.0), (-1.0, 0.0), (3.0, 2.0), n_sampled=2, stated=2.0),
    MultivariateLaplace(2, 1.0),
    MultivariateLaplace(2, 1.0, vocabulary=np.eye(2)),
    PrivUnit(5, 2.0),
    PrivUnitBall(5, 2.0, 1.0),
]
COIN = RandomizedResponse(0.5, 2)


def answers(key=KEY, mechanism=COIN, value=0, people=PEOPLE):
    return key.release(mechanism, np.full((len(people), 1), value), people).rows


def agree_by_chance(one, other):
    """Whether two columns of answers to one coin agree as often as independent ones."""
    p = COIN.p
    return binomial_pvalue((one == other).sum(), one.size, p**2 + (1 - p) ** 2) > THRESHOLD


class TestAttacks:
    def test_jitter_buys_no_second_release(self):
        """A thousand requests for one value that trembles: with new noise their mean would tell it to .03."""
        tremble = 0.3 + np.random.default_rng(0).uniform(-1e-9, 1e-9, (1000, 1))
        for mechanism in (Duchi(1.0), Piecewise(1.0), Hybrid(3.0), ThreeOutputs(1.0)):
            assert len(np.unique(KEY.release(mechanism, tremble, ["ann"] * 1000).rows)) == 1
        fresh = Duchi(1.0).release(tremble, KEY.bind(Duchi(1.0), tremble, range(1000)).noise).rows
        # Of as many people, what one person's noise would have told.
        assert binomial_pvalue((fresh > 0).sum(), 1000, 0.5 + 0.3 * Duchi(1.0).integer_law.slope / 2**64) > THRESHOLD

    def test_what_trembles_at_a_threshold_has_two_values(self):
        tremble = np.linspace(-1 / 1024, 1 / 1024, 400)[:, None]
        seen = {len(np.unique(KEY.bind(Duchi(1.0), tremble, [one] * 400).rows)) for one in range(50)}
        assert seen == {2}

    def test_two_fields_share_no_noise(self):
        assert agree_by_chance(answers(), answers(FieldKey(KEY.key, "moods")))

    def test_two_laws_share_no_noise(self):
        """Of one word with two thresholds, whoever sees both answers would know what no epsilon bounds."""
        near = RandomizedResponse(0.5 + 1e-9, 2)
        assert near.law.other_count != COIN.law.other_count
        assert agree_by_chance(answers(), answers(mechanism=near))
        # The same integers, read by another mechanism from other places of its words.
        assert Hybrid(0.1).integer_law == Duchi(0.1).integer_law
        assert law_text(Hybrid(0.1)) != law_text(Duchi(0.1))
        assert agree_by_chance(answers(), answers(mechanism=OneHotRandomizedResponse(0.5, 2))[:, 1:])

    def test_two_people_of_one_value_share_no_noise(self):
        given = answers()
        assert binomial_pvalue(given.sum(), given.size, COIN.q) > THRESHOLD
        assert agree_by_chance(given[:-1], given[1:])
        assert agree_by_chance(given, answers(people=[f"{one}th" for one in PEOPLE]))

    def test_two_values_of_one_person_share_no_noise(self):
        p = COIN.p
        kept, flipped = answers(value=0) == 0, answers(value=1) == 1
        assert binomial_pvalue((kept & flipped).sum(), kept.size, p**2) > THRESHOLD

    def test_two_secrets_share_no_noise(self):
        assert agree_by_chance(answers(), answers(FieldKey(ReleaseKey(SECRET[::-1]), "mood")))

    def test_no_id_and_no_value_can_be_mistaken_for_another(self):
        law = RandomizedResponse(1.0, 300)
        ids = [1, "01", "i1", "s1", "1i", -1, 10, "ä", "a", "1 1"]
        rows = np.array([[code] for code in range(300) for _ in ids])
        nonces = KEY.bind(law, rows, ids * 300).noise._nonces
        assert len(np.unique(nonces, axis=0)) == len(rows)
        # The bytes of a value moved into the name.
        one = KEY.bind(law, [[0]], ["ann"]).noise._nonces
        assert (KEY.bind(law, [[0]], ["ann" + "0" * 8]).noise._nonces != one).all()

    @pytest.mark.parametrize("wrong", [True, 1.0, None, b"ann", ("ann",), np.bool_(True), float("nan")])
    def test_what_is_no_id_is_refused_and_not_shown(self, wrong):
        with pytest.raises(
            TypeError, match=r"^An id must be an integer or a string; got a \w+ at position 0 \(counted from 0\)\."
        ):
            KEY.release(COIN, [[0]], [wrong])

    def test_a_fork_gives_the_same_report_and_no_other_noise_of_the_parents(self):
        bound = KEY.bind(COIN, [[0]], ["ann"])
        read, write = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                told = str(COIN.release(bound.rows, bound.noise).rows.tolist())
            except RuntimeError:
                told = "refused"
            os.write(write, pickle.dumps((told, answers(people=range(100)).tolist())))
            os._exit(0)
        os.waitpid(child, 0)
        told, given = pickle.loads(os.read(read, 60_000))
        os.close(read)
        os.close(write)
        assert told == "refused"
        assert given == answers(people=range(100)).tolist()

    def test_noise_that_was_drawn_is_not_drawn_again_for_something_else(self):
        """Who releases twice with what `bind` gave draws on: the first answer is the record's, the next ones new."""
        bound = KEY.bind(COIN, np.zeros((20_000, 1), int), PEOPLE)
        first, second = (COIN.release(bound.rows, bound.noise).rows for _ in range(2))
        assert (first == answers()).all()
        assert agree_by_chance(first, second)


class TestTheSameAgain:
    def test_whatever_was_asked(self):
        """The integers count: an epsilon, or a stated figure, that gives the same ones is the same law."""
        one, other = (BoundedFeatures(Duchi(1.0), (0.0,), (9.0,), n_sampled=1, stated=s) for s in (1.0, 7.0))
        assert law_text(one) == law_text(other)
        assert law_text(Duchi(1)) == law_text(Duchi(1.0)) == law_text(Duchi(np.float64(1.0)))
        assert law_text(PrivUnit(3, 1)) == law_text(PrivUnit(3, 1.0))
        assert law_text(MultivariateLaplace(2, 1.0, vocabulary=np.eye(2))) != law_text(
            MultivariateLaplace(2, 1.0, vocabulary=2 * np.eye(2))
        )

    def test_numbers_beyond_the_bounds_are_the_bound(self):
        given = KEY.release(Duchi(1.0), [[1.0], [5.0], [1e300]], ["ann"] * 3)
        assert len(np.unique(given.rows)) == 1
        assert given.n_moved == 2

    def test_signs_of_zero_types_and_memory_orders_do_not_matter(self):
        for rows in ([[0.0], [-0.0]], np.array([[0], [0]], dtype=np.int8)):
            assert len(np.unique(KEY.release(Piecewise(1.0), rows, ["ann"] * 2).rows)) == 1
        codes = [np.array([[1]], dtype=kind) for kind in (np.int8, np.uint64, np.int64)]
        far = KEY.bind(MultivariateLaplace(2, 1.0), [[0.0, 1.0], [-0.0, 1.0]], ["ann"] * 2)
        assert (far.noise._nonces[0] == far.noise._nonces[1]).all()
        assert len({KEY.bind(COIN, code, [3]).noise._nonces.tobytes() for code in codes}) == 1

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_a_shortened_vector_is_the_same_in_any_memory_layout(self, dtype):
        """The norm of a row of a data frame (column-major) must not draw its noise anew."""
        rows = np.random.default_rng(0).normal(size=(200, 37)).astype(dtype)
        mechanism = MultivariateLaplace(37, 1.0, radius=1.0)
        noise = [
            KEY.bind(mechanism, one, range(200)).noise._nonces.tobytes()
            for one in (rows, np.asfortranarray(rows), np.repeat(rows, 2, axis=1)[:, ::2])
        ]
        assert len(set(noise)) == 1

    @pytest.mark.parametrize("mechanism", OF_NUMBERS, ids=lambda one: type(one).__name__)
    def test_a_value_in_another_type_is_no_second_release(self, mechanism):
        """A retry from another file format: single precision bought independent noise for the same numbers."""
        n, d = 40, mechanism.domain.n_features
        rows = np.random.default_rng(0).integers(-3, 4, (n, d)).astype(np.float64)
        rows[0] = -0.0
        people = [f"{i}" for i in range(n)]
        double = KEY.release(mechanism, rows, people).rows
        for kind in (np.float16, np.float32, np.longdouble, np.int8, np.int64, ">f4", ">f8"):
            again = KEY.release(mechanism, rows.astype(kind), people).rows
            assert (again == double.astype(again.dtype)).all()
            assert again.dtype == (np.float32 if kind is np.float32 else double.dtype)
        own = KEY.release(mechanism, rows.astype(np.float32), people, np.empty_like(double)).rows
        assert (own == double).all()
        assert (KEY.release(mechanism, rows.tolist(), people).rows == double).all()
        assert (KEY.release(mechanism, np.abs(rows[:1]), people[:1]).rows == double[:1]).all()

    def test_a_record_of_several_columns_is_one_value(self):
        record = MixedRecord(
            Columns.of({"a": Column(0, 8), "b": Column(0, 9, kind="integer"), "c": Column(values=("x", "y"))}),
            (1.0, 1.0, 1.0),
        )
        rows = np.array([[1.0, 3.0, 1.0], [1.0 + 1e-9, 3.0, 1.0], [1.0, 4.0, 1.0], [1.0, 3.0, 0.0]])
        bound = KEY.bind(record, rows, ["ann"] * 4)
        np.testing.assert_array_equal(bound.rows[:, 1:], rows[:, 1:])
        same = (bound.noise._nonces[:, None] == bound.noise._nonces).all(axis=2)
        assert same.tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]

    def test_nothing_is_rounded_where_epsilon_is_one_of_a_distance(self):
        rows = np.random.default_rng(0).normal(size=(5, 3))
        np.testing.assert_array_equal(KEY.bind(MultivariateLaplace(3, 1.0), rows, range(5)).rows, rows)

    def test_no_state_is_kept(self):
        bound = answers(people=range(50))
        answers(people=range(100))
        again = pickle.loads(pickle.dumps(FieldKey(ReleaseKey(a_store), "mood")))
        np.testing.assert_array_equal(answers(again, people=range(50)), bound)
        np.testing.assert_array_equal(answers(people=range(50)), bound)


def a_store():
    return SECRET


class TestTheLaw:
    """The noise of many people, and of many values of one person, follows the law; the secret is fixed."""

    @pytest.mark.parametrize("people", [PEOPLE, ["ann"] * 20_000], ids=["people", "values"])
    def test_words_are_uniform(self, people):
        values = np.arange(20_000)[:, None]
        words = KEY.bind(RandomizedResponse(1.0, 20_000), values, people).noise.words((20_000, 2))
        assert ks_pvalue(words[:, 0] / 2.0**64, "uniform") > THRESHOLD
        assert ks_pvalue((words[:, 0] ^ words[:, 1]) / 2.0**64, "uniform") > THRESHOLD
        pairs = np.bincount((words[1:, 0] >> 62 << 2 | words[:-1, 0] >> 62).astype(int), minlength=16)
        assert chi_square_pvalue(pairs, np.full(16, 1 / 16)) > THRESHOLD

    def test_of_categories(self):
        law = RandomizedResponse(1.0, 5)
        counts = np.bincount(answers(mechanism=law, value=3)[:, 0], minlength=5)
        assert chi_square_pvalue(counts, law.flip_matrix[3]) > THRESHOLD
        ones = answers(mechanism=UnaryEncoding(1.0, 4), value=1).sum(axis=0)
        law = UnaryEncoding(1.0, 4)
        for code, seen in enumerate(ones):
            assert binomial_pvalue(seen, len(PEOPLE), law.p if code == 1 else law.q) > THRESHOLD

    def test_of_numbers(self):
        """Grid and coin together have the mean of the number itself, not that of a step."""
        law = Duchi(1.0)
        key = FieldKey(KEY.key, "mood", steps=3)
        value = 0.21
        given = answers(key, law, value)
        up = Fraction(law.integer_law.slope) * Fraction(value) / 2**64 + Fraction(1, 2)
        assert binomial_pvalue((given > 0).sum(), given.size, float(up)) > THRESHOLD
        # And not that of its nearest step, 1/3.
        off = Fraction(law.integer_law.slope) / 3 / 2**64 + Fraction(1, 2)
        assert binomial_pvalue((given > 0).sum(), given.size, float(off)) < THRESHOLD


class TestTheGrid:
    BOX = BoundedFeatures(Duchi(1.0), (-1.0, 0.0), (3.0, 1e-300), n_sampled=2, stated=2.0).domain

    @pytest.mark.parametrize("steps", [1, 2, 7, 1024])
    def test_is_unbiased_and_has_so_many_steps(self, steps):
        """Over all shifts at the middles of equal parts, of which each threshold lies between two."""
        shifts = (np.arange(1000)[:, None] + 0.5) / 1000
        for share in (0.0, 0.25, 0.5, 0.999, 1.0):
            rows = np.tile(np.array([-1.0, 0.0]) + share * np.array([4.0, 1e-300]), (1000, 1))
            moved = self.BOX.on_grid(rows, np.tile(shifts, 2), steps)
            assert (np.abs(moved.mean(axis=0) - rows[0]) <= np.array([4.0, 1e-300]) * (1e-3 / steps + 1e-12)).all()
            place = (moved[:, 0] + 1) / 4 * steps
            np.testing.assert_allclose(place, np.round(place), atol=1e-9)
            assert np.ptp(place) < 1.001

    def test_ends_stay_whatever_the_shift(self):
        rows = np.repeat([[-1.0, 0.0], [3.0, 1e-300]], 2, axis=0)
        shifts = np.tile([[2.0**-53], [1 - 2.0**-53]], (2, 2))
        np.testing.assert_array_equal(self.BOX.on_grid(rows, shifts, 1024), rows)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("steps", [1, 1024, 2**30])
    def test_is_total(self, dtype, steps):
        """The largest and the smallest numbers, and bounds that are no farther apart than these."""
        info = np.finfo(dtype)
        numbers = [0.0, info.max, -info.max, info.tiny, info.smallest_subnormal, -info.smallest_subnormal, 1.0]
        rows = np.array([[a, b] for a in numbers for b in numbers], dtype=dtype)
        people = range(len(rows))
        key = FieldKey(KEY.key, "mood", steps=steps)
        ends = (-float(info.max), 0.0), (float(info.max), float(info.smallest_subnormal))
        wide = BoundedFeatures(Duchi(1.0), *ends, n_sampled=2, stated=2.0)
        for mechanism in (PrivUnit(2, 1.0), PrivUnitBall(2, 1.0, 1.0), wide):
            bound = key.bind(mechanism, rows, people)
            assert np.isfinite(bound.rows).all()
            assert bound.rows.dtype == np.float64
            assert mechanism.domain.clip(bound.rows).n_moved == 0


class TestRefusals:
    @pytest.mark.parametrize(
        "given",
        [
            {"key": SECRET},
            {"key": None},
            {"field": ""},
            {"field": None},
            {"steps": 0},
            {"steps": True},
            {"steps": 2.0},
            {"steps": 2**31},
        ],
    )
    def test_of_parameters(self, given):
        with pytest.raises(ValueError, match=f"^{next(iter(given))} must be"):
            FieldKey(**({"key": KEY.key, "field": "mood"} | given))

    def test_of_rows(self):
        for ids in ([], ["ann"], ["ann", "bob", "eve"]):
            with pytest.raises(ValueError, match="ids must be one for each of 2 rows"):
                KEY.release(COIN, [[0], [1]], ids)
        for rows in ([0, 1], [[0, 1]]):
            with pytest.raises(ValueError, match="rows must be an array of the shape"):
                KEY.release(COIN, rows, ["ann"])
        with pytest.raises(ValueError, match="NaN"):
            KEY.release(Duchi(1.0), [[np.nan]], ["ann"])

    def test_nothing_shows_the_secret(self):
        assert SECRET.hex()[:8] not in repr(KEY)
        assert repr(KEY) == f"FieldKey(key=ReleaseKey(fingerprint='{KEY.key.fingerprint}'), field='mood', steps=1024)"

    def test_a_parameter_of_another_kind_is_not_told_by_its_looks(self):
        with pytest.raises(TypeError, match="parameters of a mechanism must be"):
            law_text(Strange(object()))


class Strange(RandomizedResponse):
    def __init__(self, what):
        object.__setattr__(self, "epsilon", what)
        object.__setattr__(self, "n_classes", 1)
