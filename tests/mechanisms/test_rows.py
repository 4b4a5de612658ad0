"""The contract of every mechanism that releases rows: one release, one walk, noise that can belong to rows."""

import copy
import inspect
import pickle

import numpy as np
import pytest

from skldp import mechanisms as door
from skldp.domains._columns import Columns
from skldp.domains._domain import FiniteSet
from skldp.mechanisms import (
    Column,
    FieldKey,
    Gaussian,
    Laplace,
    Piecewise,
    PrivUnit,
    RandomizedResponse,
    ReleaseKey,
    RowMechanism,
    bitrand,
    latent,
    ome,
)
from skldp.mechanisms._noise import RowNoise
from skldp.mechanisms._record import CategoricalRecord, MixedRecord
from skldp.mechanisms._rows import Workspace
from skldp.mechanisms.categorical._label_laws import (
    LabelLaplaceMechanism,
    LabelLaplaceVectorMechanism,
    RandomizedResponseWithPrior,
)
from skldp.mechanisms.categorical._one_hot import (
    CATEGORICAL_MECHANISMS,
    OneHotHadamard,
    OneHotLocalHashing,
    OneHotRandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
)
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures, NumberOrMissing
from skldp.mechanisms.numeric._points import ResponseOnBins
from skldp.mechanisms.numeric._unit_mechanisms import (
    Duchi,
    DuchiVector,
    Hybrid,
    HybridThreeOutputs,
    SquareWave,
    ThreeOutputs,
)
from skldp.mechanisms.vector._multivariate_laplace import MultivariateLaplace
from skldp.mechanisms.vector._privunit import PrivUnitBall, ScaledRows
from skldp.mechanisms.vector._privunit_products import PrivUnitProducts
from skldp.mechanisms.vector._projected_release import ProjectedRelease
from skldp.mechanisms.vector._projection import RandomProjection

KEY = bytes(range(32))


def each():
    """One mechanism of every kind, with rows of its domain's size: each part of the package adds its own."""
    return [*numbers(), *categorical(), *vectors(), *bits()]


def numbers():
    """Of numbers: alone and together, at epsilons where much is drawn anew, and some of a row's features."""
    alone = [
        Duchi(1e-3),
        Duchi(1.0),
        Duchi(12.0),
        ThreeOutputs(1.0),
        Piecewise(1.0),
        Piecewise(0.3, "opt", 3),
        SquareWave(2.0),
        SquareWave(0.5, lattice_bits=3),
        Hybrid(2.0),
        HybridThreeOutputs(1.0),
        Laplace(1.0, lattice_bits=2),
        Laplace(30.0, lattice_bits=2),
    ]
    together = [
        DuchiVector(1.0, 1),
        DuchiVector(1.0, 2),
        DuchiVector(6.0, 4),
        DuchiVector(1.0, 9),
        Gaussian(1.0, 1e-3, 5),
    ]
    low, high = (-1.0, 0.0, -8.0, -0.5, 0.1), (1.0, 1.0, 9.0, 0.5, 0.7)
    sampled = [
        *(BoundedFeatures(one, low, high, n_sampled=k, stated=5.0) for one in alone[1:] for k in (1, 3, 5)),
        BoundedFeatures(DuchiVector(1.0, 2), low, high, n_sampled=2, stated=1.0),
        BoundedFeatures(DuchiVector(0.1, 2), low, high, n_sampled=4, stated=1.0),
        BoundedFeatures(Gaussian(1.0, 0.2, 2, lattice_bits=2), low, high, n_sampled=4, stated=2.0),
        BoundedFeatures(Gaussian(1.0, 1e-3, 5), low, high, n_sampled=5, stated=1.0),
    ]
    bins = [ResponseOnBins(0.5, -1.0, 1.0), *(ResponseOnBins(4.0, -1.0, 0.5, (0.9, 0.1), u) for u in (False, True))]
    mixed = Columns.of({"a": Column(-1, 1), "b": Column(-2, 2, kind="integer"), "c": Column(0, 1)})
    bins += [MixedRecord(mixed, (0.5, 1.0, 4.0)), MixedRecord(mixed, (0.5, 1.0, 4.0), "piecewise")]
    either = Column(-1, 1, missing="category")
    bins += [NumberOrMissing.of(either, epsilon) for epsilon in (0.5, 3.0)]
    bins += [MixedRecord(Columns.of({"a": Column(-1, 1), "b": either}), (1.0, 2.0))]
    bins += [MixedRecord(Columns.of({"a": Column(-1, 1), "b": either}), (1.0, 2.0), n_sampled=1)]
    return [*alone, *together, *sampled, *bins]


def categorical():
    """Small epsilons and many classes, so that draws are undecided, and classes outside of a prior's support."""
    yield RandomizedResponse(0.1, 2)
    yield RandomizedResponse(1.0, 1)
    yield RandomizedResponse(0.5, 3000)
    yield RandomizedResponse(0.5, 5000)
    yield LabelLaplaceMechanism(1.0, 10)
    yield LabelLaplaceVectorMechanism(1.0, 10)
    yield RandomizedResponseWithPrior(1.0, (0.32, 0.0, 0.31, 0.37))
    yield RandomizedResponseWithPrior(1.0, (1.0, 0.0))
    yield UnaryEncoding(0.5, 7, "sue")
    yield UnaryEncoding(20.0, 20_000, "oue")
    yield OneHotRandomizedResponse(0.5, 900)
    yield SubsetSelection(0.5, 1)
    yield SubsetSelection(0.5, 300)
    yield from (kind(epsilon, 300) for kind in (OneHotLocalHashing, OneHotHadamard) for epsilon in (0.5, 3.0))
    yield OneHotHadamard(0.5, 1)
    yield MixedRecord(Columns.of({"a": Column(values=(1, 2, 3)), "b": Column(values=("x",))}), (0.5, 1.0))
    several = Columns.of(
        {name: Column(values=tuple(range(k))) for name, k in zip("abcdef", (3, 1, 40, 2, 7, 9), strict=True)}
    )
    yield MixedRecord(several, (0.5,) * 6, ("oue", "sue", "subset", "hadamard", "hashing", "krr"))
    yield from (CategoricalRecord(2.0, (3, 1, 200, 2), method) for method in CATEGORICAL_MECHANISMS)
    yield from (CategoricalRecord(2.0, (3, 1, 200, 2), method, n_sampled=2) for method in CATEGORICAL_MECHANISMS)


def vectors():
    """Directions, balls, and vectors near or far, in few dimensions and in many."""
    words = np.random.default_rng(3).normal(size=(7, 5))
    return [
        PrivUnit(2, 1.0),
        PrivUnit(5, 0.1),
        PrivUnit(40, 6.0),
        PrivUnitBall(2, 1.0, 1.0),
        PrivUnitBall(33, 3.0, 4.0),
        PrivUnitProducts(1, 1.0),
        PrivUnitProducts(7, 3.0),
        ScaledRows(PrivUnit(3, 1.0), (-1.0, 0.0, -8.0), (1.0, 1.0, 9.0)),
        ScaledRows(PrivUnitBall(3, 1.0, 1.2), (-1.0, 0.0, -8.0), (1.0, 1.0, 9.0)),
        MultivariateLaplace(1, 1.0),
        MultivariateLaplace(5, 0.2, radius=1.0),
        MultivariateLaplace(5, 4.0, vocabulary=words),
        MultivariateLaplace(41, 2.0, sensitivity=1.5),
        ProjectedRelease(RandomProjection(9, 3), 1.0),
        ProjectedRelease(RandomProjection(40, 17), 1.0, sensitivity="spectral", radius=2.0),
        ProjectedRelease(RandomProjection(9, 3, kind="sparse"), 2.0, noise="privunit", radius=2.0),
        ProjectedRelease(RandomProjection(5, 3), 2.0, sensitivity="vocabulary", vocabulary=words),
    ]


def bits():
    """As published and exact, some features and all, short codes and long ones."""
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
    if isinstance(mechanism, MixedRecord) and domain["parts"][0]["type"] == "categories":
        return draw.integers(0, [len(part["values"]) for part in domain["parts"]], (n, mechanism.domain.n_features))
    if domain["type"] == "codes":
        return draw.integers(0, domain["sizes"], (n, mechanism.domain.n_features))
    rows = draw.normal(0, 0.8, (n, mechanism.domain.n_features))
    if "or_missing" in str(domain):
        rows[::5, -1] = np.nan
    return rows


def identity(mechanism):
    return f"{type(mechanism).__name__}-{mechanism.domain.n_features}"


def test_every_public_mechanism_is_here():
    public = {one for name in door.__all__ if inspect.isclass(one := getattr(door, name))}
    public = {one for one in public if issubclass(one, RowMechanism) and not inspect.isabstract(one)}
    assert public <= {type(one) for one in MECHANISMS}


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=identity)
class TestEveryMechanism:
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
        np.testing.assert_array_equal(copy.copy(mechanism).release(rows, RowNoise(KEY, own)).rows, whole)

    def test_a_keyed_release_is_the_same_again_in_any_company(self, mechanism):
        key = FieldKey(ReleaseKey(KEY), "any")
        rows, ids = rows_for(mechanism), list(range(40))
        whole = key.release(mechanism, rows, ids).rows
        order = np.random.default_rng(2).permutation(40)[:23]
        part = key.release(copy.copy(mechanism), rows[order], order.tolist()).rows
        np.testing.assert_array_equal(part, whole[order])
        one = key.bind(mechanism, rows[7:8], [7])
        np.testing.assert_array_equal(mechanism.release(one.rows, one.noise).rows, whole[7:8])

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
            for bad in (np.inf, -np.inf) if isinstance(mechanism, NumberOrMissing) else (np.nan, np.inf, -np.inf):
                wrong = rows.copy()
                wrong[11, 0] = bad
                with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
                    mechanism.release(wrong, RowNoise(KEY, nonces(40)))
        with pytest.raises(ValueError, match="shape"):
            mechanism.release(rows[:, 0], RowNoise(KEY, nonces(40)))
        with pytest.raises(ValueError, match="shape"):
            mechanism.release(rows, RowNoise(KEY, nonces(40)), np.empty((39, mechanism.n_outputs)))

    def test_a_pickle_holds_the_fields_alone(self, mechanism):
        before = pickle.dumps(mechanism)
        mechanism.release(rows_for(mechanism), RowNoise(KEY, nonces(40)))
        assert pickle.dumps(mechanism) == before


def test_a_working_array_is_kept_as_long_as_it_fits():
    workspace = Workspace()
    first = workspace.take("a", (4, 3), np.float32)
    assert np.shares_memory(first, workspace.take("a", (2, 3), np.float32))
    assert not np.shares_memory(first, workspace.take("b", (4, 3), np.float32))
    assert not np.shares_memory(first, workspace.take("a", (4, 4), np.float32))
    assert workspace.take("a", (2,), np.float64).dtype == np.float64


class TestBeforeAValueIsLookedAt:
    """What can fail by its type fails as a ValueError, whether or not the rows hold NaN."""

    @pytest.mark.parametrize("value", [0.5, np.nan])
    def test_refuses_an_array_that_cannot_hold_the_release(self, value):
        out = np.full((3, 1), 7)
        with pytest.raises(ValueError, match="out must be of a type that float64"):
            Duchi(1.0).release(np.full((3, 1), value), RowNoise(KEY, np.zeros((3, 2), np.uint64)), out)
        assert (out == 7).all()

    def test_a_code_is_not_wrapped_into_another(self):
        noise = RowNoise(KEY, np.zeros((3, 2), np.uint64))
        with pytest.raises(ValueError, match="out must be of a type that int64"):
            RandomizedResponse(9.0, 300).release(np.full((3, 1), 299), noise, np.empty((3, 1), np.int8))


@pytest.mark.parametrize("given", [lambda rows: rows, list, tuple], ids=["an array", "a list", "a tuple"])
@pytest.mark.parametrize(
    ("mechanism", "hidden"),
    [(Duchi(1.0), np.nan), (Duchi(1.0), -9999.0), (RandomizedResponse(1.0, 3), 1), (DuchiVector(1.0, 2), 0.5)],
    ids=lambda one: f"{one!r:.12}",
)
def test_masked_cells_are_refused_whatever_they_hide(mechanism, hidden, given):
    d = mechanism.domain.n_features
    cells = np.full((2, d), hidden)
    noise = RowNoise(KEY, np.zeros((2, 2), np.uint64))
    with pytest.raises(ValueError, match="must not have masked cells"):
        mechanism.release(given(np.ma.array(cells, mask=[[False] * d, [True] * d])), noise)
    with pytest.raises(ValueError, match="must not have masked cells"):
        mechanism.encode(given(np.ma.array(cells, mask=[[False] * d, [True] * d])))


@pytest.mark.parametrize("copied", [lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy])
@pytest.mark.parametrize(
    ("one", "name"),
    [
        (MultivariateLaplace(2, 1.0, vocabulary=np.eye(2)), "vocabulary"),
        (
            ProjectedRelease(RandomProjection(3, 2), 1.0, sensitivity="vocabulary", vocabulary=np.eye(3)),
            "vocabulary",
        ),
        (FiniteSet(np.eye(2)), "vectors"),
    ],
)
def test_a_copy_has_vectors_that_nobody_can_change(one, name, copied):
    assert not getattr(copied(one), name).flags.writeable
