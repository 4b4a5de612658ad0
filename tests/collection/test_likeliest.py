import numpy as np
import pytest
from laws import hadamard, hashing

from skldp.collection._answer_scores import CodeScores
from skldp.collection._likeliest import likeliest_codes
from skldp.mechanisms import RandomizedResponse, noise_from
from skldp.mechanisms.categorical._frequency import project_onto_simplex
from skldp.mechanisms.categorical._one_hot import SubsetSelection, UnaryEncoding

# Hash functions of one digit, of digits that the categories fill or hardly fill, and of small and large primes.
LAWS = [
    *(hashing(epsilon, k) for epsilon, k in ((1.0, 5), (5.0, 3), (0.1, 60), (1.0, 30), (3.5, 200), (2.0, 100))),
    *(hadamard(*one) for one in ((1.0, 5), (3.0, 30), (5.0, 200))),
    RandomizedResponse(1.0, 7),
    SubsetSelection(1.0, 9),
    UnaryEncoding(1.0, 9),
    UnaryEncoding(1.0, 70),
]


def answers_of(mechanism, n, rng):
    """Answers of the law to random codes, as a collector holds them."""
    codes = rng.integers(0, mechanism.n_classes, n) ** 2 // mechanism.n_classes
    rows = mechanism.release(codes[:, None], noise_from(rng)).rows
    if rows.shape[1] == 1:
        return rows[:, 0].astype(np.uint32)
    if rows.shape[1] > 64:
        return np.packbits(np.pad(rows, ((0, 0), (-rows.shape[1] % 8, 0))), axis=1)
    return (rows.astype(np.uint64) @ (1 << np.arange(rows.shape[1], dtype=np.uint64))[::-1]).astype(np.uint64)


@pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("mechanism", LAWS, ids=repr)
def test_products_are_those_of_each_report(mechanism):
    """Against the table of what each report supports, with weights that differ between reports."""
    rng, k = np.random.default_rng(1), mechanism.n_classes
    answers = answers_of(mechanism, 300, rng)
    table = np.array([mechanism.integer_law.supports(answers, code) for code in range(k)], dtype=float)
    found = mechanism.integer_law.products(answers)
    assert found.counts.sum() == 300
    shares = rng.dirichlet(np.ones(k))
    each = np.repeat(found.supported(shares), found.counts.astype(int))
    np.testing.assert_allclose(np.sort(each), np.sort(shares @ table), rtol=0, atol=1e-9)
    weights = found.counts / (0.1 + found.supported(shares))
    np.testing.assert_allclose(found.supporting(weights), table @ (1 / (0.1 + shares @ table)), rtol=1e-9)


@pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("mechanism", LAWS, ids=repr)
def test_no_shares_are_likelier_than_the_certificate_allows(mechanism):
    rng, k = np.random.default_rng(2), mechanism.n_classes
    answers = answers_of(mechanism, 3_000, rng)
    law = mechanism.integer_law
    table = np.array([law.supports(answers, code) for code in range(k)], dtype=float)
    more = np.expm1(law.epsilon)
    found = likeliest_codes(law, answers)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1)
    factors = (1 + more * table) @ (1 / (1 + more * (found @ table))) / 3_000
    assert 3_000 * (factors.max() - 1) < k / 16 + 1e-6
    if not isinstance(mechanism, SubsetSelection | UnaryEncoding):
        assert 3_000 * (factors.max() - 1) < k / 128 + 1e-6


@pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
def test_shares_stay_as_even_as_the_certificate_allows():
    """The likeliest shares of noise would be as far from even ones as the projection."""
    mechanism = UnaryEncoding(0.5, 400)
    rows = mechanism.release(np.arange(4_000)[:, None] % 400, noise_from(np.random.default_rng(6))).rows
    law = mechanism.integer_law
    answers = np.packbits(rows, axis=1)
    projected = project_onto_simplex(CodeScores(law).sums(answers, np.ones(4_000))[0][None] / 4_000)[0]
    found = likeliest_codes(law, answers)
    assert ((found - 1 / 400) ** 2).sum() < 0.7 * ((projected - 1 / 400) ** 2).sum()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
def test_a_million_reports_of_many_categories_are_estimated():
    """Their table of bits would have 10^11 of them."""
    mechanism = hadamard(2.0, 100_000)
    codes = np.minimum(np.random.default_rng(4).geometric(0.2, 1_000_000) - 1, 99_999)
    released = mechanism.release(codes[:, None], noise_from(np.random.default_rng(5))).rows
    found = likeliest_codes(mechanism.integer_law, released[:, 0].astype(np.uint32))
    np.testing.assert_allclose(found[:5], np.bincount(codes)[:5] / 1e6, rtol=0, atol=0.01)
