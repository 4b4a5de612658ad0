"""Faults of categories."""

from mutations.fault_table._mutation import CATEGORIES, Mutation

__all__ = ["MUTATIONS"]

MUTATIONS = [
    Mutation(
        "mechanisms/_categorical/unary.py",
        "return TWO_64 // 2 if self.variant",
        "return TWO_64 // 2 + 2**55 if self.variant",
        f"{CATEGORIES} mechanisms/test_unary.py",
    ),
    Mutation(
        "mechanisms/_categorical/unary.py",
        "bernoulli(noise, self.own_count, own,",
        "bernoulli(noise, self.own_count + 1, own,",
        CATEGORIES,
    ),
    Mutation(
        "mechanisms/_categorical/unary.py",
        "bernoulli(noise, self.other_count, out,",
        "bernoulli(noise, self.other_count - 1, out,",
        CATEGORIES,
    ),
    Mutation(
        "mechanisms/_categorical/unary.py",
        "original[own, own] = np.diag((mean[own] - q[own]) / gain[own])",
        "pass",
        "mechanisms/test_unary.py",
    ),
    Mutation(
        "mechanisms/_categorical/randomized_response.py",
        "return (second_moment - q * ((n - 1)",
        "return (second_moment - q * ((n + 1)",
        "mechanisms/test_categorical.py",
    ),
    Mutation(
        "mechanisms/_categorical/unary.py",
        'return 2 if self.variant == "sue" else 1',
        "return 1",
        f"{CATEGORIES} mechanisms/test_unary.py",
    ),
    Mutation(
        "mechanisms/_categorical/subset.py",
        "n_own=self.set_size, n_counted=others)",
        "n_own=self.set_size, n_counted=others) - 1",
        "mechanisms/test_subset.py",
    ),
    Mutation(
        "mechanisms/_categorical/subset.py",
        "self.own_count * (self.n_classes - self.set_size), self.miss_count * self.set_size",
        "self.own_count * (self.n_classes - self.set_size - 1), self.miss_count * self.set_size",
        "mechanisms/test_subset.py",
    ),
    Mutation(
        "mechanisms/_categorical/subset.py",
        "members += members >= rows",
        "members += members > rows",
        "mechanisms/test_subset.py",
    ),
    Mutation(
        "mechanisms/_categorical/subset.py",
        "places = noise.integers(self.set_size, len(rows))",
        "places = noise.integers(self.set_size, len(rows)) * 0",
        "mechanisms/test_subset.py",
    ),
    Mutation(
        "mechanisms/_categorical/subset.py",
        "bernoulli(noise, self.own_count, held,",
        "bernoulli(noise, self.own_count + 1, held,",
        "mechanisms/test_subset.py",
    ),
    Mutation(
        "mechanisms/_categorical/local_hashing.py",
        "chosen = noise.integers(self.n_hashes, rows.shape)",
        "chosen = noise.integers(self.n_hashes, rows.shape) * 0",
        "mechanisms/test_reports.py",
    ),
    Mutation(
        "mechanisms/_categorical/local_hashing.py",
        "self.answers._draw(self.hashed(chosen, rows), noise",
        "self.answers._draw(self.hashed(chosen - 1, rows), noise",
        "mechanisms/test_reports.py",
    ),
    Mutation(
        "mechanisms/_categorical/local_hashing.py",
        "alike = float(Fraction(g ** (m - 1) - 1, g**m - 1))",
        "alike = float(Fraction(g ** (m - 1), g**m))",
        "mechanisms/test_reports.py",
    ),
    Mutation(
        "mechanisms/_categorical/local_hashing.py",
        "(answers + places[own, digit]) % base",
        "(answers - places[own, digit]) % base",
        "mechanisms/test_reports.py",
    ),
    Mutation(
        "mechanisms/_categorical/hadamard.py",
        "n_own=self.block_size // 2, n_counted=others)",
        "n_own=self.block_size // 2, n_counted=others) - 1",
        "mechanisms/test_reports.py",
    ),
    Mutation(
        "mechanisms/_categorical/hadamard.py",
        "bernoulli(noise, self.own_count, held,",
        "bernoulli(noise, self.own_count + 1, held,",
        "mechanisms/test_reports.py",
    ),
    Mutation(
        "mechanisms/_categorical/hadamard.py",
        "other = noise.integers(self.n_reports - n_own, rows.shape)",
        "other = noise.integers(self.n_reports - n_own, rows.shape) // 2",
        "mechanisms/test_reports.py",
    ),
    Mutation(
        "mechanisms/_categorical/hadamard.py",
        "held, missed = self.own_count * others, self.miss_count * own",
        "held, missed = self.own_count * (others - 1), self.miss_count * own",
        "mechanisms/test_reports.py",
    ),
    Mutation(
        "mechanisms/_categorical/hadamard.py",
        "lowest = rows & -rows",
        "lowest = np.ones_like(rows)",
        "mechanisms/test_reports.py",
    ),
    Mutation(
        "mechanisms/_categorical/hadamard.py",
        "elsewhere = (starts + size + other - n_own)",
        "elsewhere = (starts + size + other)",
        "mechanisms/test_reports.py",
    ),
    Mutation(
        "mechanisms/_categorical/catalogue.py",
        "_TOLERANCE = 1.05",
        "_TOLERANCE = 1.5",
        "mechanisms/test_best_categories.py",
    ),
    Mutation(
        "mechanisms/_categorical/randomized_response.py",
        'draws, side="right")]',
        'draws, side="left")]',
        CATEGORIES,
    ),
    Mutation(
        "mechanisms/_categorical/randomized_response.py",
        "out[...] = self._shift(noise.words(codes.shape))",
        "out[...] = self._shift(noise.words(codes.shape) + np.uint64(1))",
        CATEGORIES,
    ),
    Mutation(
        "mechanisms/_categorical/randomized_response.py",
        "noise.at(undecided, codes.size)",
        "noise.at(undecided + 1, codes.size + 1)",
        "mechanisms/test_rows.py",
    ),
    Mutation(
        "mechanisms/_categorical/randomized_response.py",
        "first = (leading + (rest > 0))",
        "first = (leading + (rest > 1))",
        CATEGORIES,
        survives="the one value that this moves is set to undecided afterwards",
    ),
    Mutation(
        "mechanisms/_categorical/randomized_response.py",
        "table[leading[rest > 0].astype(np.int64)] = -1",
        "table[leading[rest > 1].astype(np.int64)] = -1",
        CATEGORIES,
    ),
    Mutation(
        "mechanisms/_categorical/label_laws.py",
        "noise.at(outside, rows.size).integers(self.support.size, outside.size)",
        "0",
        CATEGORIES,
    ),
    Mutation(
        "mechanisms/_categorical/label_laws.py",
        "return -(-others // (self.n_classes - 1))",
        "return others // (self.n_classes - 1)",
        "mechanisms/test_categorical.py",
    ),
    Mutation(
        "mechanisms/_categorical/label_vector.py",
        "return Laplace(self.epsilon)",
        "return Laplace(2 * self.epsilon)",
        "mechanisms/test_label_vector.py",
    ),
    Mutation(
        "mechanisms/_categorical/label_vector.py",
        "discrete_laplace(self.law.scale, out.size, noise)",
        "discrete_laplace(max(1, self.law.scale // 2), out.size, noise)",
        "mechanisms/test_label_vector.py",
    ),
    Mutation(
        "mechanisms/_categorical/row_priors.py",
        "np.where(inside, answered, uniform)",
        "answered",
        "mechanisms/test_row_priors.py",
    ),
    Mutation(
        "mechanisms/_categorical/row_priors.py",
        "inside = places[group] < size\n",
        "inside = places[group] <= size\n",
        "mechanisms/test_row_priors.py",
    ),
    Mutation(
        "mechanisms/_categorical/row_priors.py",
        "max(law.exact_epsilon for law in self.laws)",
        "self.laws[-1].exact_epsilon",
        "mechanisms/test_row_priors.py",
    ),
    Mutation(
        "mechanisms/_categorical/row_priors.py",
        "np.isfinite(given).all(axis=1, keepdims=True) & ",
        "",
        "mechanisms/test_row_priors.py",
    ),
    Mutation(
        "mechanisms/_categorical/row_priors.py",
        "    mass /= mass.max(axis=1, keepdims=True)\n",
        "",
        "mechanisms/test_row_priors.py",
    ),
    Mutation(
        "mechanisms/_categorical/label_laws.py",
        "expected.argmax(axis=1) + 1",
        "expected.argmax(axis=1)",
        "mechanisms/test_row_priors.py",
    ),
    Mutation(
        "mechanisms/_categorical/hadamard.py", "    n_blocks = 1\n", "    n_blocks = 2\n", "mechanisms/test_reports.py"
    ),
    Mutation(
        "mechanisms/_categorical/hadamard.py",
        "np.arange(1, self.n_classes + 1)",
        "np.arange(self.n_classes)",
        "mechanisms/test_reports.py",
    ),
]
