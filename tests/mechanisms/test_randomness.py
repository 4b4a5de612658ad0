import copy
import math
import os
import pickle
import threading
import time
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import Parallel, delayed
from laws import THRESHOLD, chi_square_pvalue, seeded

from skldp.exceptions import SeededNoiseWarning
from skldp.laws._odds import flip_threshold, threshold_log_odds
from skldp.mechanisms._noise import Noise, RowNoise, noise_from


def first_words(_=None):
    return tuple(noise_from().words(2).tolist())


@pytest.mark.slow
def test_four_processes_draw_distinct_noise():
    assert len(set(Parallel(n_jobs=4)(delayed(first_words)() for _ in range(8)))) == 8


def test_four_forked_children_draw_distinct_noise():
    drawn = []
    for _ in range(4):
        read, write = os.pipe()
        # The child does nothing but draw, write and leave.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            os.write(write, pickle.dumps(first_words()))
            os._exit(0)
        os.waitpid(child, 0)
        drawn.append(pickle.loads(os.read(read, 1000)))
        os.close(read)
        os.close(write)
    assert len(set(drawn)) == 4


def test_a_stream_refuses_to_go_on_after_a_fork(monkeypatch):
    stream = noise_from()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(RuntimeError, match="after a fork"):
        stream.words(1)
    with pytest.raises(RuntimeError, match="after a fork"):
        stream.spawn(1)


def test_a_lock_that_was_held_at_the_fork_does_not_stop_the_refusal(monkeypatch):
    stream = noise_from()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with stream._lock, pytest.raises(RuntimeError, match="after a fork"):
        stream.words(1)


def test_a_forked_child_cannot_spawn_the_noise_of_its_parent():
    parent = noise_from()
    read, write = os.pipe()
    # The child does nothing but spawn, write what it got and leave.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            told = repr(parent.spawn(1)[0].words(2).tolist())
        except RuntimeError as error:
            told = str(error)
        os.write(write, told.encode())
        os._exit(0)
    os.waitpid(child, 0)
    told = os.read(read, 1000).decode()
    os.close(read)
    os.close(write)
    assert "must not be used after a fork" in told
    assert told != repr(parent.spawn(1)[0].words(2).tolist())


class SlowCount(int):
    """A count of children that lets all other threads run whenever it is read or added to."""

    def __index__(self):
        time.sleep(1e-3)
        return int(self)

    def __add__(self, n):
        time.sleep(1e-3)
        return SlowCount(int(self) + int(n))


def test_threads_that_spawn_from_one_stream_never_get_one_key():
    stream, spawned = seeded(), []
    stream._n_children = SlowCount(0)
    workers = [threading.Thread(target=lambda: spawned.extend(stream.spawn(2) + stream.spawn(1))) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert stream._n_children == 24
    assert len({tuple(child.words(2).tolist()) for child in spawned}) == 24


def test_threads_sharing_one_stream_draw_distinct_noise():
    stream, drawn = seeded(), []
    workers = [threading.Thread(target=lambda: drawn.extend(stream.words(1000).tolist())) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(set(drawn)) == 4000


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_stream_cannot_be_duplicated(duplicate):
    with pytest.raises(TypeError, match="must not be copied"):
        duplicate(noise_from())


def test_the_global_seed_has_no_influence():
    state = np.random.get_state()
    try:
        draws = []
        for _ in range(2):
            np.random.seed(0)
            draws.append(first_words())
    finally:
        np.random.set_state(state)
    assert draws[0] != draws[1]


@pytest.mark.parametrize("make", [lambda: 7, lambda: np.random.default_rng(7), lambda: np.random.RandomState(7)])
def test_a_seed_repeats_and_warns(make):
    with pytest.warns(SeededNoiseWarning, match="repeatable"):
        one, other = noise_from(make()), noise_from(make())
    assert not one.secure
    np.testing.assert_array_equal(one.words(100), other.words(100))


def test_a_generator_is_advanced():
    generator = np.random.default_rng(0)
    with pytest.warns(SeededNoiseWarning):
        draws = [noise_from(generator).words(2).tolist() for _ in range(2)]
    assert draws[0] != draws[1]


@pytest.mark.parametrize(("seed", "error"), [(True, TypeError), ("1", TypeError), (-1, ValueError), (1.0, TypeError)])
def test_refuses_what_is_no_seed(seed, error):
    with pytest.raises(error, match="seed"):
        noise_from(seed)


def test_children_are_distinct_and_depend_on_the_key_alone():
    one, other = seeded(3), seeded(3)
    other.words(1000)
    first, second = one.spawn(3), other.spawn(2) + other.spawn(1)
    words = [child.words(2).tolist() for child in first]
    assert words == [child.words(2).tolist() for child in second]
    assert len({tuple(word) for word in words}) == 3
    assert tuple(one.words(2)) not in {tuple(word) for word in words}


@pytest.mark.parametrize("n_bytes", [1, 15, 16, 17, 65_535, 65_536, 65_537, 200_000])
def test_the_stream_is_one_keystream_whatever_the_pieces(n_bytes):
    whole = seeded(1).words(n_bytes, np.uint8)
    pieces = seeded(1)
    cut = n_bytes // 3
    np.testing.assert_array_equal(
        whole, np.concatenate([pieces.words(cut, np.uint8), pieces.words(n_bytes - cut, np.uint8)])
    )


@pytest.mark.parametrize("high", [1, 2, 3, 10, 257])
def test_integers_are_uniform(high):
    counts = np.bincount(seeded(4).integers(high, (100, 400)).ravel(), minlength=high)
    assert len(counts) == high
    assert high == 1 or chi_square_pvalue(counts, np.full(high, 1 / high)) > THRESHOLD


def test_integers_reject_the_incomplete_run_of_remainders(monkeypatch):
    """With a bound just above 2^62, a quarter of the words must be drawn anew."""
    high = 3 * 2**61
    stream = seeded(5)
    drawn = stream.integers(high, 40_000)
    assert drawn.max() < high
    thirds = np.bincount(drawn // 2**61, minlength=3)
    assert chi_square_pvalue(thirds, np.full(3, 1 / 3)) > THRESHOLD


@pytest.mark.parametrize("high", [0, -3, 2**63 + 1])
def test_integers_refuse_other_bounds(high):
    with pytest.raises(ValueError, match="high must be"):
        noise_from().integers(high, 3)


def test_bernoulli_compares_whole_words(monkeypatch):
    """Exactly `threshold` of the 2^64 words give True: checked at the threshold itself."""
    stream = noise_from()
    monkeypatch.setattr(stream, "words", lambda size: np.array([4, 5, 6], dtype=np.uint64))
    assert stream.bernoulli(5, 3).tolist() == [True, False, False]


@given(st.floats(-800, 800))
def test_thresholds_round_to_the_private_side(log_odds):
    threshold = int(flip_threshold(log_odds))
    assert 1 <= threshold <= 2**64 - 1
    sampled = float(threshold_log_odds(threshold))
    # 44.37 is ln(2^64 - 1), the longest odds that 64 bits hold.
    assert abs(sampled) <= abs(log_odds) * (1 + 1e-13) + 1e-15
    smaller = min(threshold, 2**64 - threshold)
    one_step = math.log(smaller / (smaller - 1)) if smaller > 1 else 1.0
    assert abs(sampled) >= min(abs(log_odds), math.log(2**64 - 1)) - one_step - 1e-14
    assert sampled == 0 or math.copysign(1, sampled) == math.copysign(1, log_odds)


@given(st.integers(1, 2**64 - 1))
def test_log_odds_of_integers_are_upper_bounds(threshold):
    from fractions import Fraction

    small = min(threshold, 2**64 - threshold)
    ratio = Fraction(2**64 - small, small)
    exact = math.log(ratio.numerator) - math.log(ratio.denominator)
    sampled = abs(float(threshold_log_odds(threshold)))
    assert sampled >= exact * (1 - 1e-14) - 1e-13
    assert sampled <= exact * (1 + 1e-14) + 1e-13


def test_thresholds_refuse_nan():
    with pytest.raises(ValueError, match="finite"):
        flip_threshold(float("nan"))


def test_uniforms_never_reach_the_ends(monkeypatch):
    stream = noise_from()
    for word in (0, 2**64 - 1):
        monkeypatch.setattr(stream, "words", lambda size, word=word: np.array([word], dtype=np.uint64))
        assert 0 < stream.uniform(1)[0] < 1


@pytest.mark.parametrize(("n", "k"), [(4, 2), (4, 4), (5, 0), (5, 1)])
def test_subsets_are_uniform(n, k):
    from itertools import combinations

    drawn = seeded(8).subsets(20_000, n, k)
    assert drawn.shape == (20_000, k)
    sets = [tuple(row) for row in np.sort(drawn, axis=1)]
    possible = list(combinations(range(n), k))
    counts = [sets.count(one) for one in possible]
    assert sum(counts) == 20_000
    assert len(possible) == 1 or chi_square_pvalue(counts, np.full(len(possible), 1 / len(possible))) > THRESHOLD


def test_words_that_are_alike_give_no_order(monkeypatch):
    stream, words = noise_from(), iter([[7, 1, 7], [5, 9, 2]])
    monkeypatch.setattr(stream, "words", lambda size: np.array(next(words), dtype=np.uint64))
    assert stream.permutation(3).tolist() == [2, 0, 1]


def test_permutations_are_uniform():
    stream = seeded(10)
    orders = [tuple(stream.permutation(3)) for _ in range(3_000)]
    counts = [orders.count(one) for one in set(orders)]
    assert len(counts) == 6
    assert chi_square_pvalue(counts, np.full(6, 1 / 6)) > THRESHOLD


def test_says_whether_it_is_secure():
    assert repr(noise_from()) == "Noise(secure=True)"
    assert isinstance(seeded(), Noise)


@pytest.mark.parametrize("part", [(slice(None), slice(0, 2)), (slice(None), slice(None, None, 2))])
def test_an_array_that_would_be_filled_in_a_copy_is_refused(part):
    with pytest.raises(ValueError, match="C-contiguous"):
        Noise(bytes(32), secure=False).fill(np.zeros((4, 4), dtype=np.uint64)[part])


class TestNoiseOfRows:
    KEY = bytes(range(32))

    @staticmethod
    def nonces(n):
        return np.random.default_rng(0).integers(0, 2**64, (n, 2), dtype=np.uint64)

    def test_bits_depend_on_the_nonce_alone(self):
        own = self.nonces(7)
        whole = RowNoise(self.KEY, own)
        first, second = whole.words((7, 3)), whole.words((7, 5), np.uint16)
        for some in ([2], [0, 3, 6], [6, 5, 1]):
            part = RowNoise(self.KEY, own[some])
            np.testing.assert_array_equal(part.words((len(some), 3)), first[some])
            np.testing.assert_array_equal(part.words((len(some), 5), np.uint16), second[some])

    def test_more_noise_for_a_few_numbers_is_that_of_their_rows(self):
        own = self.nonces(5)
        whole = RowNoise(self.KEY, own)
        whole.words((5, 4))
        # Numbers 2 and 3 belong to row 0, 9 to row 2: two words for row 0, one after the other, and one for row 2.
        drawn = whole.at(np.array([2, 3, 9]), 20).words(3)
        after = whole.words((5, 1))
        alone = RowNoise(self.KEY, own[[2]])
        alone.words((1, 4))
        assert alone.at(np.array([1]), 4).words(1)[0] == drawn[2]
        assert alone.words((1, 1))[0, 0] == after[2, 0]
        nested = RowNoise(self.KEY, own)
        nested.words((5, 4))
        some = nested.at(np.array([2, 3, 9]), 20)
        assert some.at(np.array([0, 1, 2]), 3).words(3).tolist() == drawn.tolist()

    def test_no_two_words_are_one_block_of_the_cipher(self):
        noise = RowNoise(self.KEY, self.nonces(50))
        words = np.concatenate([noise.words((50, 6)).ravel(), noise.at(np.arange(0, 300, 7), 300).words(43)])
        assert np.unique(words).size == words.size

    def test_blocks_and_threads_go_on_where_their_rows_are(self):
        own = self.nonces(6)
        whole = RowNoise(self.KEY, own).words((6, 4))
        parts = RowNoise(self.KEY, own).split([slice(0, 2), slice(2, 6)])
        np.testing.assert_array_equal(
            np.concatenate([parts[1].words((4, 4)), parts[0].words((2, 4))]), whole[[2, 3, 4, 5, 0, 1]]
        )

    def test_integers_that_are_drawn_anew_are_drawn_for_their_rows(self):
        # A quarter of all words is rejected here.
        own, high = self.nonces(40), 3 * 2**61
        whole = RowNoise(self.KEY, own).integers(high, (40, 3))
        some = [1, 17, 30]
        np.testing.assert_array_equal(RowNoise(self.KEY, own[some]).integers(high, (3, 3)), whole[some])

    def test_refuses_what_belongs_to_no_row(self):
        noise = RowNoise(self.KEY, self.nonces(3))
        with pytest.raises(ValueError, match="equal runs"):
            noise.words(4)
        with pytest.raises(TypeError, match="split"):
            noise.spawn(2)
        with pytest.raises(ValueError, match="nonces"):
            RowNoise(self.KEY, np.zeros((3, 3), dtype=np.uint64))
        with pytest.raises(TypeError, match="copied or pickled"):
            copy.copy(noise)


@pytest.mark.parametrize("k", [-1, 6])
def test_subsets_refuse_more_than_there_are(k):
    with pytest.raises(ValueError, match="k must be"):
        noise_from().subsets(3, 5, k)
