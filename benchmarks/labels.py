"""Labels and categories: million a second against the plain numpy way, in one process, with secure noise.

Run ``python benchmarks/labels.py``. The plain ways draw numpy's own (insecure, faster) uniforms, 64 bits each.
"""

import time

import numpy as np

from skldp.mechanisms import (
    LabelLaplaceMechanism,
    RandomizedResponse,
    RandomizedResponseWithPrior,
    UnaryEncoding,
    noise_from,
)

N, REPEATS = 1_000_000, 7


def best_of(function):
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def plain_response(codes, law, rng):
    lie = rng.random(codes.size) >= law.keep_probability
    others = rng.integers(0, law.n_classes - 1, codes.size)
    return np.where(lie, others + (others >= codes), codes)


def plain_laplace(codes, law, rng):
    noisy = rng.laplace(scale=2 / law.epsilon, size=(codes.size, law.n_classes))
    noisy[np.arange(codes.size), codes] += 1
    return noisy.argmax(axis=1)


def plain_unary(codes, law, rng):
    own = np.arange(law.n_classes) == codes[:, None]
    return rng.random((codes.size, law.n_classes)) < np.where(own, law.p, law.q)


def plain_prior(codes, law, rng):
    cumulative = law.flip_matrix.cumsum(axis=1)
    return (rng.random(codes.size)[:, None] > cumulative[codes]).sum(axis=1)


def main():
    rng = np.random.default_rng(0)
    prior = tuple((np.arange(10, 0, -1) / 55).tolist())
    rows = [
        ("k-ary response, C = 2", RandomizedResponse(1.0, 2), plain_response),
        ("k-ary response, C = 10", RandomizedResponse(1.0, 10), plain_response),
        ("k-ary response, C = 1000", RandomizedResponse(1.0, 1000), plain_response),
        ("with prior, C = 10", RandomizedResponseWithPrior(1.0, prior), plain_prior),
        ("label-Laplace, C = 10", LabelLaplaceMechanism(1.0, 10), plain_laplace),
        ("SUE, C = 10", UnaryEncoding(1.0, 10, "sue"), plain_unary),
        ("OUE, C = 10", UnaryEncoding(1.0, 10, "oue"), plain_unary),
    ]
    print(f"{'mechanism':26}{'million/s':>10}{'plain':>10}{'ratio':>8}")
    for name, law, plain in rows:
        codes = rng.integers(0, law.n_classes, N)
        ours = best_of(lambda law=law, codes=codes: law.release(codes[:, None], noise_from()))
        theirs = best_of(lambda law=law, codes=codes, plain=plain: plain(codes, law, rng))
        print(f"{name:26}{N / ours / 1e6:10.1f}{N / theirs / 1e6:10.1f}{theirs / ours:8.1f}")


if __name__ == "__main__":
    main()
