"""The contract of every mechanism that releases rows: one release, one walk, noise that can belong to rows."""

import pickle

import numpy as np
import pytest

from skldp.mechanisms import RowMechanism, bitrand, latent, ome
from skldp.mechanisms._noise import RowNoise

KEY = bytes(range(32))


def each():
    """One mechanism of every kind, with rows of its domain's size: each part of the package adds its own."""
    return _bits()


def _bits():
    bounds = (np.array([-1.0, -0.2, 0.0, 0.1, -3.0]), np.array([1.0, 0.4, 0.6, 0.3, 0.5]))
    return [
        bitrand(1.0, (-np.ones(7), np.ones(7))),
        bitrand(1e-3, bounds, calibration="exact", n_sampled_features=2),
        bitrand(1.0, bounds, n_bits=24, n_sampled_features=3),
        bitrand(3.0, bounds, debias=True),
        latent(1.0, bounds, n_bits=12),
        ome(1.0, bounds, n_bits=5, n_sampled_features=4),
        bitrand(5.0, bounds, calibration="exact", debias=True),
        bitrand(40.0, bounds, calibration="exact", debias=True, n_sampled_features="all"),
    ]


MECHANISMS = each()


def nonces(n, seed=0):
    return np.random.default_rng(seed).integers(0, 2**64, (n, 2), dtype=np.uint64)


def rows_for(mechanism, n=40, seed=1):
    """Rows of the mechanism's domain, some of them outside where anything can be moved into it."""
    draw = np.random.default_rng(seed)
    domain = mechanism.domain.to_dict()
    if domain["type"] == "codes":
        return draw.integers(0, domain["sizes"], (n, mechanism.domain.n_features))
    return draw.normal(0, 0.8, (n, mechanism.domain.n_features))


def identity(mechanism):
    return f"{type(mechanism).__name__}-{mechanism.domain.n_features}"


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=identity)
class TestEveryMechanism:
    def test_is_a_row_mechanism(self, mechanism):
        assert isinstance(mechanism, RowMechanism)

    def test_a_row_has_its_own_noise(self, mechanism):
        rows, own = rows_for(mechanism), nonces(40)
        whole = mechanism.release(rows, RowNoise(KEY, own)).rows
        # Whatever the company, the order and the block: the same row of the same nonce is released alike.
        order = np.random.default_rng(2).permutation(40)[:23]
        part = mechanism.release(rows[order], RowNoise(KEY, own[order])).rows
        np.testing.assert_array_equal(part, whole[order])
        one = mechanism.release(rows[7:8], RowNoise(KEY, own[7:8])).rows
        np.testing.assert_array_equal(one, whole[7:8])

    def test_another_row_changes_nothing(self, mechanism):
        rows, own = rows_for(mechanism), nonces(40)
        whole = mechanism.release(rows, RowNoise(KEY, own)).rows
        other, theirs = rows.copy(), own.copy()
        other[3], theirs[3] = rows_for(mechanism, seed=5)[3], nonces(1, seed=9)[0]
        changed = mechanism.release(other, RowNoise(KEY, theirs)).rows
        np.testing.assert_array_equal(np.delete(changed, 3, axis=0), np.delete(whole, 3, axis=0))

    def test_blocks_change_nothing(self, mechanism, monkeypatch):
        rows, own = rows_for(mechanism), nonces(40)
        whole = mechanism.release(rows, RowNoise(KEY, own)).rows
        monkeypatch.setattr(type(mechanism), "block_cells", 3 * mechanism.block_width)
        np.testing.assert_array_equal(mechanism.release(rows, RowNoise(KEY, own)).rows, whole)

    def test_rows_are_not_written_to_and_memory_order_does_not_matter(self, mechanism):
        rows, own = rows_for(mechanism), nonces(40)
        given = rows.copy()
        whole = mechanism.release(rows, RowNoise(KEY, own)).rows
        np.testing.assert_array_equal(rows, given)
        rows.flags.writeable = False
        for same in (np.asfortranarray(rows), np.repeat(rows, 2, axis=0)[::2], rows):
            np.testing.assert_array_equal(mechanism.release(same, RowNoise(KEY, own)).rows, whole)

    def test_writes_where_it_is_told(self, mechanism):
        rows, own = rows_for(mechanism), nonces(40)
        whole = mechanism.release(rows, RowNoise(KEY, own)).rows
        out = np.empty((40, mechanism.n_outputs), dtype=whole.dtype)
        assert mechanism.release(rows, RowNoise(KEY, own), out).rows is out
        np.testing.assert_array_equal(out, whole)
        strided = np.empty((40, 2 * mechanism.n_outputs), dtype=np.float64)[:, ::2]
        mechanism.release(rows, RowNoise(KEY, own), strided)
        np.testing.assert_array_equal(strided, whole)

    def test_refuses_what_is_no_row_and_says_no_value(self, mechanism):
        rows = rows_for(mechanism)
        if rows.dtype.kind == "f":
            for bad in (np.nan, np.inf, -np.inf):
                wrong = rows.copy()
                wrong[11, 0] = bad
                with pytest.raises(ValueError, match=r"Input contains (NaN|infinity)"):
                    mechanism.release(wrong, RowNoise(KEY, nonces(40)))
        with pytest.raises(ValueError, match="shape"):
            mechanism.release(rows[:, 0], RowNoise(KEY, nonces(40)))
        with pytest.raises(ValueError, match="shape"):
            mechanism.release(rows, RowNoise(KEY, nonces(40)), np.empty((39, mechanism.n_outputs)))

    def test_a_pickle_holds_the_fields_alone(self, mechanism):
        before = pickle.dumps(mechanism)
        mechanism.release(rows_for(mechanism), RowNoise(KEY, nonces(40)))
        assert pickle.dumps(mechanism) == before
