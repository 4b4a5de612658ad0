"""BitRand, LATENT and OME: the guarantee against enumeration, the laws that come out, unbiasedness."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import THRESHOLD, chi_square_pvalue, code_law, seeded

from skldp.mechanisms._rows import Workspace
from skldp.mechanisms.bits._bit_flip import bitrand, latent, ome
from skldp.mechanisms.bits._calibration import worst_pair_losses
from skldp.mechanisms.bits._flip_laws import log_alpha_bound

RECIPES = {"bitrand": bitrand, "latent": latent, "ome": ome}


def box(n_features, low=-1.0, high=1.0):
    return np.full(n_features, low), np.full(n_features, high)


def reachable_codes(mechanism, column):
    encoding = mechanism.encoding
    edges = np.arange(-(2 ** (encoding.n_bits - 1)), 2 ** (encoding.n_bits - 1) + 1) * encoding.step
    low, high = mechanism.bounds.low[column], mechanism.bounds.high[column]
    values = np.concatenate([[low, high], edges, np.nextafter(edges, -99)])
    return sorted({int(code) for code in encoding.encode(values[(values >= low) & (values <= high)])})


def reachable_ends(mechanism):
    """The codes of both ends of the bounds of the first feature."""
    return {int(code) for code in mechanism.encoding.encode([mechanism.bounds.low[0], mechanism.bounds.high[0]])}


def integer_law(mechanism, code, column):
    """Weights of every output code over 2^(64 l), as Python integers."""
    n_bits, law = mechanism.encoding.n_bits, mechanism.laws[column % len(mechanism.laws)]
    weights = [1]
    for place in range(n_bits):
        one = int((law.from_one if code >> (n_bits - 1 - place) & 1 else law.from_zero)[place])
        weights = [weight * side for weight in weights for side in (2**64 - one, one)]
    return weights


def brute_force_levels(mechanism):
    """Largest log-likelihood ratio of one feature, over all pairs of reachable codes and all outputs."""
    levels = []
    for column in range(mechanism.n_outputs):
        laws = [integer_law(mechanism, code, column) for code in reachable_codes(mechanism, column)]
        levels.append(
            max(
                math.log(a) - math.log(b)
                for one, other in itertools.product(laws, laws)
                for a, b in zip(one, other, strict=True)
            )
        )
    return levels


@given(
    st.sampled_from(["bitrand", "latent", "ome"]),
    st.floats(0.05, 8),
    st.integers(1, 3),
    st.integers(2, 4),
    st.integers(-1, 2),
    st.floats(0.05, 1.0),
    st.data(),
)
@settings(max_examples=100, deadline=None)
def test_the_guarantee_is_what_enumeration_finds(name, epsilon, n_features, n_bits, m, share, data):
    ends = st.floats(-1.2, 1.2).map(lambda x: x * 2.0**m)
    pairs = data.draw(
        st.lists(
            st.lists(ends, min_size=2, max_size=2, unique=True).map(sorted), min_size=n_features, max_size=n_features
        )
    )
    alpha = share * (math.exp(log_alpha_bound(epsilon, n_features, n_bits)) if name == "bitrand" else 4)
    mechanism = RECIPES[name](epsilon, np.array(pairs).T, n_bits=n_bits, n_integer_bits=m, alpha=alpha)
    levels = brute_force_levels(mechanism)
    guarantee = mechanism.guarantee()
    assert guarantee.epsilon == pytest.approx(sum(levels), rel=1e-9, abs=1e-12)
    assert guarantee.per_feature == pytest.approx(max(levels), rel=1e-9, abs=1e-12)
    assert guarantee.stated == epsilon


def test_a_record_of_two_features_is_enumerated_jointly():
    mechanism = bitrand(1.5, ([-1.0, 0.0], [1.0, 1.0]), n_bits=2)
    records = list(itertools.product(*(reachable_codes(mechanism, column) for column in (0, 1))))
    law = {r: np.multiply.outer(*(code_law(mechanism.laws[0], code) for code in r)) for r in records}
    worst = max(np.log(law[one] / law[other]).max() for one, other in itertools.product(records, records))
    assert mechanism.guarantee().epsilon == pytest.approx(worst, rel=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "record", "feature"),
    [(0.1, 2668, 3.47), (1, 3311, 4.31), (2, 5410, 7.04), (5, 13859, 18.0), (10, 30059, 39.1)],
)
def test_published_bitrand_protects_by_thousands(epsilon, record, feature):
    guarantee = bitrand(epsilon, box(768)).guarantee()
    assert round(guarantee.epsilon) == record
    assert float(f"{guarantee.per_feature:.3g}") == feature


def test_published_latent_and_ome_show_all_their_figures():
    guarantee = latent(0.1, box(1000)).guarantee()
    assert guarantee.epsilon / 0.1 == pytest.approx(0.875, abs=1e-5)
    assert guarantee.figures[0][1] / 0.1 == pytest.approx(4.571, abs=5e-4)
    harsh = ome(0.1, box(1000), alpha=100.0).guarantee()
    assert harsh.per_feature == pytest.approx(69.03, abs=0.01)
    printed, magnitude = dict(harsh.figures).values()
    assert printed / 0.1 == pytest.approx(-4.6e7, rel=2e-3)
    assert magnitude == -printed
    mild = ome(0.1, box(1000)).guarantee()
    assert mild.epsilon / 0.1 == pytest.approx(0.5, abs=1e-5)
    assert mild.figures[0][1] / 0.1 == pytest.approx(2.0, abs=1e-9)


@pytest.mark.slow
@given(
    st.sampled_from(["bitrand", "latent", "ome", "sign and grid"]),
    st.floats(0.01, 200),
    st.integers(1, 40),
    st.integers(2, 24),
    st.sampled_from([(-1.0, 1.0), (0.0, 1.0), (-1.0, 0.25), (-0.6, 0.25), (0.5, 0.625), (-3.0, -1.0)]),
    st.sampled_from([None, "all", 1]),
)
@settings(max_examples=60, deadline=None)
def test_exact_calibration_states_what_it_gives(name, epsilon, n_features, n_bits, bounds, n_sampled):
    debiased = name == "sign and grid"
    recipe = RECIPES.get(name, bitrand)
    mechanism = recipe(
        epsilon,
        box(n_features, *bounds),
        n_bits=n_bits,
        calibration="exact",
        n_sampled_features=n_sampled,
        debias=debiased,
    )
    guarantee = mechanism.guarantee()
    assert guarantee.epsilon <= epsilon
    # From 20 units a feature on, the integers themselves are coarse, and in the end no bit can be surer than 2^-64.
    several = debiased or len(reachable_ends(mechanism)) > 1
    if guarantee.per_feature < 20 and several:
        assert guarantee.epsilon >= epsilon * (1 - 1e-9)


@pytest.mark.parametrize("n_bits", [4, 5])
@pytest.mark.parametrize("name", ["bitrand", "latent", "ome"])
def test_released_codes_follow_the_law(name, n_bits):
    mechanism = RECIPES[name](3.0, box(3), n_bits=n_bits, alpha=None if name == "bitrand" else 1.7)
    x = np.tile([-0.9, 0.3, 0.77], (60_000, 1))
    released = mechanism.encoding.encode(mechanism.release(x, seeded(1)).rows)
    # Zero comes out of two codes; -0.0 is encoded as the positive one.
    for column in range(3):
        own = mechanism.laws[column % len(mechanism.laws)]
        law = code_law(own, int(mechanism.encoding.encode(x[:1])[0, column]))
        law[2 ** (n_bits - 1)] += law[0]
        law[0] = 0
        assert chi_square_pvalue(np.bincount(released[:, column], minlength=2**n_bits), law) > THRESHOLD


@pytest.mark.parametrize(("dtype", "n_bits"), [(np.float32, 10), (np.float64, 10), (np.float64, 21), (np.float32, 40)])
def test_features_are_independent_and_the_dtype_stays(dtype, n_bits):
    mechanism = bitrand(1.0, box(4), n_bits=n_bits)
    x = np.zeros((50_000, 4), dtype=dtype)
    released = mechanism.release(x, seeded(3)).rows
    assert released.dtype == dtype
    signs = (np.signbit(released) * [1, 2, 4, 8]).sum(axis=1)
    q = mechanism.laws[0].error_probabilities[0, 0]
    expected = [np.prod([q if pattern >> j & 1 else 1 - q for j in range(4)]) for pattern in range(16)]
    assert chi_square_pvalue(np.bincount(signs, minlength=16), expected) > THRESHOLD


@pytest.mark.parametrize("n_sampled", [None, 2])
@pytest.mark.parametrize("name", ["bitrand", "latent", "ome"])
@pytest.mark.parametrize("debias", [False, True])
def test_bias_and_variance_are_those_of_the_enumerated_law(name, debias, n_sampled):
    bounds = ([-1.0, -0.5, 0.0], [1.0, 1.0, 0.9])
    mechanism = RECIPES[name](
        2.0, bounds, n_bits=5, alpha=None if name == "bitrand" else 1.7, debias=debias, n_sampled_features=n_sampled
    )
    x = np.array([[-0.71, 0.4, 0.9], [0.33, -0.5, 0.0]])
    codes = mechanism.encoding.encode(x)
    chance = mechanism.n_sampled / 3
    for row, column in np.ndindex(x.shape):
        law = code_law(mechanism.laws[column % len(mechanism.laws)], int(codes[row, column]))
        decoder = mechanism.decoders[column % len(mechanism.decoders)]
        numbers = decoder.decode(np.arange(32, dtype=np.uint16), np.empty(32), Workspace()) / chance
        mean = chance * (law @ numbers)
        variance = chance * (law @ numbers**2) - mean**2
        assert mechanism.bias(x)[row, column] == pytest.approx(mean - x[row, column], abs=1e-12)
        assert mechanism.variance(x)[row, column] == pytest.approx(variance, rel=1e-10)
        if debias:
            assert mean == pytest.approx(mechanism.encode(x).rows[row, column], abs=1e-12)


def test_debias_refuses_a_bit_that_tells_nothing():
    with pytest.raises(ValueError, match=r"Every bit must depend on its input"):
        bitrand(2.0, box(1), n_bits=2, alpha=math.exp(-1.0), debias=True)


def test_sampled_features_are_uniform_and_the_others_are_0():
    mechanism = bitrand(3.0, box(6), calibration="exact", n_sampled_features=2, n_bits=6)
    x = np.full((30_000, 6), 0.99)
    released = mechanism.release(x, seeded(9)).rows
    # A released number is 0 when all its magnitude bits come out 0; then it is -0.0 or hidden among the zeros.
    assert ((released != 0).sum(axis=1) <= 2).all()
    shown = (released != 0).sum(axis=0)
    assert chi_square_pvalue(shown, np.full(6, 1 / 6)) > THRESHOLD
    scale = 6 / 2
    assert np.isin(np.abs(released) / scale, np.arange(32) / 32).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_bits": 1}, "n_bits must be"),
        ({"n_bits": 65}, "n_bits must be"),
        ({"alpha": 3.0}, "Theorem 2"),
        ({"alpha": 0.1, "calibration": "exact"}, "alpha belongs to"),
        ({"alpha": 0.1, "calibration": "exact", "debias": True}, "alpha belongs to"),
        ({"calibration": "best"}, "calibration must be"),
        ({"n_sampled_features": 4}, "n_sampled_features, if not None"),
        ({"n_sampled_features": 0}, "n_sampled_features, if not None"),
        ({"n_sampled_features": True}, "n_sampled_features, if not None"),
        ({"n_sampled_features": "some"}, "n_sampled_features, if not None"),
    ],
)
def test_bad_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        bitrand(1.0, box(3), **options)


@pytest.mark.parametrize(
    "bounds", [([1.0], [-1.0]), ([0.0], [0.0]), ([0.0], [np.inf]), ([[0.0]], [[1.0]]), ([0.0], [1.0, 2.0])]
)
def test_bad_bounds_are_refused(bounds):
    with pytest.raises(ValueError, match="low and high must be"):
        bitrand(1.0, bounds)


@pytest.mark.parametrize("debias", [False, True])
def test_an_epsilon_that_rounds_away_is_refused(debias):
    with pytest.raises(ValueError, match="at least about"):
        bitrand(1e-19, box(2), calibration="exact", debias=debias)


def test_exact_ome_refuses_an_alpha_that_tells_too_much():
    with pytest.raises(ValueError, match=r"at least .* with this alpha"):
        ome(1.0, box(3), alpha=100.0, calibration="exact")


def test_a_record_of_sampled_features_costs_what_its_dearest_ones_do():
    # Within (0, 1) nobody's sign is told, so the features cost differently; any of them may be the one drawn.
    low, high = np.array([0.0, -1.0, 0.0]), np.ones(3)
    for k in (1, 2, 3):
        release = bitrand(2.0, (low, high), n_bits=4, n_sampled_features=k)
        reachable = release.encoding.reachable(release.encoding.encode(np.stack([low, high], axis=1)))
        levels = sorted(worst_pair_losses(release.laws[0].losses, reachable))
        assert levels[0] < levels[2]
        assert release.guarantee().epsilon == pytest.approx(sum(levels[3 - k :]), rel=1e-12)
        assert release.guarantee().per_feature == levels[2]


@pytest.mark.parametrize("bounds", [(5.0, 10.0), (-9.0, -6.5), (-2.0, 0.25)])
@pytest.mark.parametrize("value", [1e30, -1e30, 0.001, -0.001])
def test_values_that_are_moved_into_bounds_off_zero_are_released_like_the_bound(bounds, value):
    low, high = (np.full(3, end) for end in bounds)
    release = bitrand(700.0, (low, high), n_bits=8, n_integer_bits=2, n_sampled_features="all")
    moved = np.clip(np.full((4, 3), value), low, high)
    released = release.release(np.full((4, 3), value), seeded(0))
    np.testing.assert_array_equal(released.rows, release.release(moved, seeded(0)).rows)
    assert released.n_moved == (0 if bounds[0] <= value <= bounds[1] else 12)


class TestSecondMoments:
    X = np.random.default_rng(3).uniform(-1, 1, (40, 4))

    def original(self, mechanism):
        """From the exact mean of z z', over all sets of sampled features and all codes, back to that of x x'."""
        d, k = mechanism.n_outputs, mechanism.n_sampled
        mean, square = mechanism._feature_moments(self.X)
        products = np.einsum("ni,nj->ij", mean, mean) / len(self.X) * (d / k) * ((k - 1) / (d - 1))
        np.fill_diagonal(products, square.mean(axis=0) * (d / k))
        return mechanism.original_second_moment(products, mean.mean(axis=0))

    @pytest.mark.parametrize("k", [2, 3, 4])
    @pytest.mark.parametrize("n_bits", [3, 10])
    def test_unbiased_bits_give_those_of_the_encoded_rows(self, k, n_bits):
        bounds = ([-1.0, -0.5, 0.0, -2.0], [1.0, 1.0, 0.9, 2.0])
        mechanism = bitrand(2.0, bounds, n_bits=n_bits, alpha=0.05, debias=True, n_sampled_features=k)
        encoded = mechanism.encoding.decode(mechanism.encoding.encode(self.X))
        np.testing.assert_allclose(self.original(mechanism), encoded.T @ encoded / len(self.X), rtol=1e-9, atol=1e-12)

    def test_it_is_what_releases_have(self):
        mechanism = bitrand(2.0, box(4), alpha=0.01, debias=True, n_sampled_features=3)
        found = []
        for seed in range(30):
            Z = mechanism.release(np.repeat(self.X, 100, axis=0), seeded(seed)).rows
            found.append(mechanism.original_second_moment(Z.T @ Z / len(Z), Z.mean(axis=0)))
        encoded = mechanism.encode(self.X).rows
        error = np.mean(found, axis=0) - encoded.T @ encoded / len(encoded)
        assert (np.abs(error) < 6 * np.std(found, axis=0) / np.sqrt(30)).all()
        assert (np.std(found, axis=0) < 0.2).all()

    @pytest.mark.parametrize(
        ("mechanism", "message"),
        [
            (bitrand(2.0, box(4)), "`debias` must be True"),
            (latent(2.0, box(4), debias=True), "Every law must be symmetric"),
            (ome(2.0, box(4), n_bits=5, debias=True, alpha=2.0), "Every law must be symmetric"),
            (bitrand(20.0, box(4), calibration="exact", debias=True, n_sampled_features=2), "must be 'published'"),
            (bitrand(2.0, box(4), n_sampled_features=1, debias=True), "at least 2"),
        ],
        ids=["published", "latent", "ome", "sign and grid", "one feature"],
    )
    def test_other_laws_do_not_tell_them(self, mechanism, message):
        with pytest.raises(ValueError, match=message):
            mechanism.original_second_moment(np.eye(4), np.zeros(4))


@pytest.mark.parametrize("make", [latent, ome])
@pytest.mark.parametrize("calibration", ["published", "exact"])
def test_an_alpha_is_checked_although_laws_are_kept(make, calibration):
    make(1.0, box(3), calibration=calibration, alpha=1.0)
    with pytest.raises(ValueError, match="alpha must be a finite number"):
        make(1.0, box(3), calibration=calibration, alpha=True)


def test_mechanisms_of_the_same_law_are_equal():
    one, other = (bitrand(2.0, box(4), calibration="exact") for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert one != bitrand(2.5, box(4), calibration="exact")
