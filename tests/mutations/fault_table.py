"""Faults that must each turn a test red: one changed line, and the tests that are there to see it.

Where a fault changes nothing that anybody can see, or nothing that matters for privacy, it says why it may survive.
"""

from typing import NamedTuple

__all__ = ["MUTATIONS", "Mutation"]


class Mutation(NamedTuple):
    """One fault.

    Parameters
    ----------
    path : str
        Below ``skldp/``.
    old, new : str
        `old` occurs once in the file.
    tests : str
        What must go red, as pytest takes it, below ``tests/``; several are separated by blanks.
    survives : str, default=""
        Why no test can be expected to see it.
    needs : str, default=""
        Modules without which its tests are skipped.
    """

    path: str
    old: str
    new: str
    tests: str
    survives: str = ""
    needs: str = ""


_NOISE = "mechanisms/test_randomness.py"
_OR_MISSING = "mechanisms/test_number_or_missing.py"
_COLLECTOR = "collection/test_collector.py"
_HITTERS = "collection/test_heavy_hitters.py"
_SCORES = "learning/test_answer_scores.py"
_CATEGORIES = "mechanisms/test_sampled_categories.py"
_NUMBERS = "mechanisms/test_sampled_numbers.py"
_BITS = "mechanisms/test_sampled_bits.py"
_VECTORS = "mechanisms/test_sampled_vectors.py"
_SPHERE = "mechanisms/test_sphere_precision.py"
_ANSWERS = "accounting/test_sampled_answers.py"
_CERTIFIED = "accounting/test_sampled_answers.py accounting/test_certificates.py accounting/test_certified.py"
_CHOICES = "accounting/test_region_choices.py"
_ADDED = "accounting/test_added_losses.py"
_DOMAINS = "accounting/test_domains.py"
_FILES = (
    "accounting/test_ledger_file.py accounting/test_ledger_damage.py accounting/test_ledger_crashes.py "
    "accounting/test_ledger.py accounting/test_ledger_versions.py"
)
_CALLS = "accounting/test_ledger_calls.py"
_MISSING = "estimators/test_missing_values.py"
_SOFTMAX = "accounting/test_softmax_query.py"
_OF_CLASS = "estimators/test_class_probability.py"
_PARTS = "accounting/test_parts.py"
_FEATURES = "accounting/test_features.py"
_AGAIN = "accounting/test_releases_made_again.py"
_QUESTIONS_AGAIN = "estimators/test_questions_made_again.py"
_ERASED = "accounting/test_ledger_erasing.py"
_HOSTS = "accounting/test_ledger_postgres.py"
_DRIVER = "sqlalchemy psycopg"
_WHOLES = "estimators/test_whole_guarantee.py estimators/test_counted_releases.py estimators/test_composition.py"
_PROMISES = "estimators/test_promise.py"
_PEOPLE = "estimators/test_people.py estimators/test_bayesian_filter.py"
_CHARGED = (
    "accounting/test_charges.py accounting/test_units.py accounting/test_parts.py accounting/test_deltas.py "
    "accounting/test_charges_verified.py"
)
_BUDGETS = "accounting/test_budget_edges.py accounting/test_filters.py accounting/test_decisions.py"
_SPARSE = "mechanisms/test_sparse_rows.py"
_SHUFFLED = "mechanisms/test_shuffling.py accounting/test_shuffle.py"

MUTATIONS = [
    Mutation(
        "study/_rivals.py",
        "np.array_split(noise.permutation(len(rows)), self.n_rounds)",
        "[noise.permutation(len(rows))] * self.n_rounds",
        "study/test_rivals.py",
    ),
    Mutation(
        "study/_rivals.py",
        "rows, target = released[:, :-1], released[:, -1:]",
        "rows = released[:, :-1]",
        "study/test_rivals.py",
    ),
    Mutation(
        "study/_rivals.py",
        "gradient_release(mechanism, clip, 1)",
        "gradient_release(mechanism, clip, 2)",
        "study/test_rivals.py",
    ),
    Mutation(
        "study/_federated/settings.py",
        "seed=int(self._seeds.integers(1 << 63))",
        "seed=int(self._seeds.integers(1 << 1))",
        "study/test_federated.py",
    ),
    # The noise itself.
    Mutation("mechanisms/_noise.py", "if os.getpid() != self._pid:", "if False:", _NOISE),
    Mutation(
        "mechanisms/_noise.py",
        "        self._refuse_after_fork()\n        with self._lock:\n            children",
        "        with self._lock:\n            children",
        _NOISE,
    ),
    Mutation(
        "mechanisms/_noise.py",
        "        self._refuse_after_fork()\n        with self._lock:\n            position",
        "        with self._lock:\n            position",
        _NOISE,
    ),
    Mutation(
        "mechanisms/_noise.py",
        "        with self._lock:\n            children = range(self._n_children, self._n_children + n)\n"
        "            self._n_children += n",
        "        children = range(self._n_children, self._n_children + n)\n        self._n_children += n",
        _NOISE,
    ),
    Mutation("mechanisms/_noise.py", "            self._n_children += n\n", "", _NOISE),
    Mutation(
        "mechanisms/_noise.py",
        "return Noise(os.urandom(32), secure=True)",
        "return Noise(bytes(32), secure=True)",
        _NOISE,
    ),
    Mutation(
        "mechanisms/_noise.py",
        "self.words(t.shape if size is None else size) < t",
        "self.words(t.shape if size is None else size) <= t",
        _NOISE,
    ),
    Mutation(
        "mechanisms/_noise.py",
        "last = np.uint64(2**64 - 1 - 2**64 % high)",
        "last = np.uint64(2**64 - 1)",
        f"{_NOISE} {_CATEGORIES}",
    ),
    Mutation(
        "mechanisms/_noise.py",
        "again = np.flatnonzero(words > last)",
        "again = np.flatnonzero(words >= last)",
        _CATEGORIES,
    ),
    Mutation(
        "mechanisms/_odds.py",
        "np.ceil(small_side * (1 + _EXPIT_ERROR) * 2.0**64)",
        "np.floor(small_side * (1 - _EXPIT_ERROR) * 2.0**64)",
        _NOISE,
    ),
    Mutation("mechanisms/_odds.py", "* (1 - _EXPIT_ERROR) * 2.0**63).astype", "* (1 + 1e-9) * 2.0**63).astype", _NOISE),
    Mutation(
        "mechanisms/_noise.py",
        "draws[taken[row_starts + draws]] = newest",
        "draws[taken[row_starts + draws]] = 0",
        f"{_NOISE} {_NUMBERS}",
    ),
    Mutation(
        "mechanisms/_noise.py",
        "while len(view) - position > _SLACK:",
        "while len(view) - position > 2 * _SLACK:",
        _NOISE,
        survives="what one way of writing leaves over the other writes: the key stream is the same",
    ),
    # Domains.
    Mutation("mechanisms/_domain.py", "if not (low <= high).all():", "if False:", "mechanisms/test_domain.py"),
    Mutation(
        "mechanisms/_domain.py", "np.where(inner_low < low,", "np.where(inner_low > low,", "mechanisms/test_domain.py"
    ),
    Mutation("mechanisms/_domain.py", "bool | np.bool_ | str | bytes |", "bytes |", "mechanisms/test_domain.py"),
    Mutation(
        "mechanisms/_domain.py",
        "factors < 1 - shortening_by_rounding(rows.dtype, rows.shape[1])",
        "factors < 1",
        "mechanisms/test_domain.py",
    ),
    Mutation("mechanisms/_columns.py", "np.rint(within)", "np.floor(within)", "mechanisms/test_domain.py"),
    Mutation("mechanisms/_columns.py", "if len(fields) < len(pairs):", "if False:", "mechanisms/test_domain.py"),
    Mutation("mechanisms/_rows.py", "noise if whole else noise.block(part)", "noise", "mechanisms/test_rows.py"),
    # Categories.
    Mutation(
        "mechanisms/_domain.py",
        "(unsigned < np.asarray(self.sizes, np.uint64)).all()",
        "(unsigned < np.uint64(max(self.sizes))).all()",
        "mechanisms/test_unary.py",
    ),
    Mutation(
        "estimators/_labels.py",
        'own.kind == dtype.kind and np.can_cast(own, dtype, "safe")',
        'np.can_cast(own, dtype, "same_kind")',
        "estimators/test_out_of_core.py",
    ),
    Mutation(
        "mechanisms/_categorical/unary.py",
        "return TWO_64 // 2 if self.variant",
        "return TWO_64 // 2 + 2**55 if self.variant",
        f"{_CATEGORIES} mechanisms/test_unary.py",
    ),
    Mutation(
        "mechanisms/_categorical/unary.py",
        "bernoulli(noise, self.own_count, own,",
        "bernoulli(noise, self.own_count + 1, own,",
        _CATEGORIES,
    ),
    Mutation(
        "mechanisms/_categorical/unary.py",
        "bernoulli(noise, self.other_count, out,",
        "bernoulli(noise, self.other_count - 1, out,",
        _CATEGORIES,
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
        f"{_CATEGORIES} mechanisms/test_unary.py",
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
        "accounting/_blanket_laws.py",
        "known = all(one.laws for one in columns)",
        "known = True",
        "accounting/test_shuffle.py",
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
        "mechanisms/_odds.py",
        "np.less(draws, leading, out=out)",
        "np.less_equal(draws, leading, out=out)",
        _CATEGORIES,
        survives="a draw whose first 16 bits are those of the count is decided anew by the 48 others",
    ),
    Mutation(
        "mechanisms/_odds.py",
        "= further < rest",
        "= further <= rest",
        _CATEGORIES,
    ),
    Mutation(
        "mechanisms/_odds.py",
        "to_integral_value(rounding=ROUND_CEILING)",
        "to_integral_value(rounding=ROUND_FLOOR)",
        _CATEGORIES,
    ),
    Mutation(
        "mechanisms/_odds.py",
        "return value if Decimal(value) >= exact else math.nextafter(value, math.inf)",
        "return math.nextafter(value, 0.0)",
        f"{_CATEGORIES} mechanisms/test_categorical.py",
    ),
    Mutation(
        "mechanisms/_categorical/randomized_response.py",
        'draws, side="right")]',
        'draws, side="left")]',
        _CATEGORIES,
    ),
    Mutation(
        "mechanisms/_categorical/randomized_response.py",
        "out[...] = self._shift(noise.words(codes.shape))",
        "out[...] = self._shift(noise.words(codes.shape) + np.uint64(1))",
        _CATEGORIES,
    ),
    Mutation(
        "mechanisms/_categorical/randomized_response.py",
        "noise.at(undecided, codes.size)",
        "noise.at(undecided + 1, codes.size + 1)",
        "mechanisms/test_rows.py",
    ),
    Mutation(
        "mechanisms/_odds.py",
        "noise.at(undecided, draws.size)",
        "noise",
        "mechanisms/test_rows.py",
    ),
    Mutation(
        "mechanisms/_noise.py",
        "self.at(again, words.size).words(again.size)",
        "self.words(again.size)",
        _CATEGORIES,
    ),
    Mutation(
        "mechanisms/_categorical/randomized_response.py",
        "first = (leading + (rest > 0))",
        "first = (leading + (rest > 1))",
        _CATEGORIES,
        survives="the one value that this moves is set to undecided afterwards",
    ),
    Mutation(
        "mechanisms/_categorical/randomized_response.py",
        "table[leading[rest > 0].astype(np.int64)] = -1",
        "table[leading[rest > 1].astype(np.int64)] = -1",
        _CATEGORIES,
    ),
    Mutation(
        "mechanisms/_categorical/label_laws.py",
        "noise.at(outside, rows.size).integers(self.support.size, outside.size)",
        "0",
        _CATEGORIES,
    ),
    Mutation(
        "mechanisms/_categorical/label_laws.py",
        "return -(-others // (self.n_classes - 1))",
        "return others // (self.n_classes - 1)",
        "mechanisms/test_categorical.py",
    ),
    # Numbers.
    Mutation(
        "mechanisms/_numeric/duchi.py",
        "up[close] = words.view(np.int64) < self",
        "up[close] = words.view(np.int64) <= self",
        _NUMBERS,
    ),
    Mutation(
        "mechanisms/_numeric/duchi.py",
        "up = noise.words(x.shape).view(np.int64) < self",
        "up = noise.words(x.shape).view(np.int64) <= self",
        _NUMBERS,
    ),
    Mutation("mechanisms/_numeric/duchi.py", "_FIRST_ERROR = 2\n", "_FIRST_ERROR = 0\n", _NUMBERS),
    Mutation(
        "mechanisms/_numeric/duchi.py",
        "2**63 + self.slope, 2**63 - self.slope",
        "2**63 + self.slope, 2**63",
        _NUMBERS,
    ),
    Mutation("mechanisms/_numeric/three_outputs.py", "(words < to_wrong)", "(words <= to_wrong)", _NUMBERS),
    Mutation("mechanisms/_numeric/three_outputs.py", "(words >= to_zero)", "(words > to_zero)", _NUMBERS),
    Mutation(
        "mechanisms/_numeric/three_outputs.py",
        "at_one = math.ceil(",
        "at_one = math.floor(",
        f"{_NUMBERS} mechanisms/test_numeric_laws.py",
        survives="one part in 2^64, within what calibration_epsilon keeps below epsilon; the figure is of the integers",
    ),
    Mutation(
        "mechanisms/_numeric/three_outputs.py",
        "return max(of_sign, log_ratio(zero, zero_end, in_doubles=True)) if zero else of_sign",
        "return of_sign",
        f"{_NUMBERS} mechanisms/test_numeric_laws.py",
    ),
    Mutation(
        "mechanisms/_numeric/piecewise.py",
        "again = np.flatnonzero(drawn >= total)",
        "again = np.flatnonzero(drawn > total)",
        _NUMBERS,
    ),
    Mutation(
        "mechanisms/_numeric/piecewise.py",
        "near >>= 63",
        "near >>= 62",
        _NUMBERS,
    ),
    Mutation("mechanisms/_numeric/piecewise.py", "part += near\n", "part += near - 1\n", _NUMBERS),
    Mutation(
        "mechanisms/_numeric/piecewise.py",
        "return log_ratio(base + extra, base, in_doubles=True)",
        "return log_ratio(base + extra, base + 1, in_doubles=True)",
        _NUMBERS,
        survives="one part in 2^60 of a ratio that log_ratio rounds up by more",
    ),
    Mutation(
        "mechanisms/_numeric/hybrid.py",
        "chosen = noise.bernoulli(np.uint64(self.threshold), x.shape)",
        "chosen = noise.bernoulli(np.uint64(self.threshold - 1), x.shape)",
        _NUMBERS,
    ),
    Mutation(
        "mechanisms/_numeric/duchi.py",
        "want = noise.bernoulli(np.uint64(self.threshold), n)",
        "want = noise.bernoulli(np.uint64(self.threshold + 2**50), n)",
        _NUMBERS,
    ),
    Mutation(
        "mechanisms/_numeric/duchi.py",
        "negate &= 2 * n_disagree != d",
        "negate &= True",
        _NUMBERS,
        survives="a tie negated is a tie, and its negative is as likely",
    ),
    Mutation(
        "mechanisms/_numeric/duchi.py",
        "twice == d, twice < d)",
        "twice == d, twice <= d)",
        f"{_NUMBERS} mechanisms/test_numeric_laws.py",
    ),
    Mutation(
        "mechanisms/_numeric/discrete_noise.py",
        "return 0 if high * denominator < numerator else None",
        "return 0 if low * denominator < numerator else None",
        _NUMBERS,
    ),
    Mutation(
        "mechanisms/_numeric/discrete_noise.py", "again = again[_is_odd(words[again])]", "again = again[:0]", _NUMBERS
    ),
    Mutation(
        "mechanisms/_numeric/discrete_noise.py",
        "several.argmax(axis=1)",
        "several.argmin(axis=1)",
        _NUMBERS,
    ),
    Mutation("mechanisms/_numeric/discrete_noise.py", "np.flatnonzero(~kept)", "np.flatnonzero(kept)[:0]", _NUMBERS),
    Mutation(
        "mechanisms/_numeric/discrete_noise.py",
        "drawn = noise.at(small, words.size).words(small.size)",
        "drawn = noise.words(small.size)",
        _NUMBERS,
    ),
    Mutation(
        "mechanisms/_numeric/duchi.py",
        "noise.at(close, x.size).words(close.size)",
        "noise.words(close.size)",
        _NUMBERS,
    ),
    Mutation(
        "mechanisms/_numeric/unit_interval.py",
        "return (squares - constant) / (1 + square)",
        "return squares / (1 + square)",
        "mechanisms/test_numeric_laws.py",
    ),
    Mutation("mechanisms/_numeric/discrete_noise.py", "_LOG_ERROR = 2.0**-45", "_LOG_ERROR = 0.0", _NUMBERS),
    Mutation("mechanisms/_numeric/discrete_noise.py", "cost -= sigma\n", "cost -= sigma - 1\n", _NUMBERS),
    Mutation(
        "mechanisms/_numeric/additive.py",
        "below += noise.bernoulli(up)",
        "below += noise.bernoulli(np.uint64(2**63), up.shape)",
        _NUMBERS,
    ),
    Mutation(
        "mechanisms/_numeric/additive.py",
        "return discrete_gaussian(self.sigma, size, noise)",
        "return discrete_gaussian(self.sigma - 1, size, noise)",
        _NUMBERS,
    ),
    Mutation(
        "mechanisms/_numeric/additive.py",
        "return round_up(Fraction(2) ** (self.lattice_exponent + 1) / self.scale)",
        "return float(Fraction(2) ** self.lattice_exponent / self.scale)",
        f"{_NUMBERS} mechanisms/test_additive.py",
    ),
    Mutation(
        "mechanisms/_rows.py",
        "features = noise.subsets(len(rows), d, k)",
        "features = np.tile(noise.subsets(1, d, k), (len(rows), 1))",
        f"{_NUMBERS} mechanisms/test_feature_sampling.py",
    ),
    # Bits.
    Mutation(
        "mechanisms/_bits/mask_sampling.py",
        "np.greater_equal(words, self.n_decided",
        "np.greater(words, self.n_decided",
        _BITS,
    ),
    Mutation(
        "mechanisms/_bits/mask_sampling.py",
        "below = np.searchsorted(self.boundaries, drawn[near])",
        'below = np.searchsorted(self.boundaries, drawn[near], "right")',
        _BITS,
    ),
    Mutation("mechanisms/_bits/kernels.py", "if words[i] >= n_decided:", "if words[i] > n_decided:", _BITS),
    Mutation(
        "mechanisms/_bits/kernels.py",
        "if boundaries[middle] < drawn[k]:",
        "if boundaries[middle] <= drawn[k]:",
        _BITS,
    ),
    Mutation(
        "mechanisms/_bits/mask_sampling.py", "tied = [k for k in tied if firsts[k] == prefix]", "tied = []", _BITS
    ),
    Mutation(
        "mechanisms/_bits/mask_sampling.py",
        "return below + len(tied)",
        "return below",
        f"{_BITS} mechanisms/test_mask_sampling.py",
    ),
    Mutation(
        "mechanisms/_bits/mask_sampling.py",
        "codes &= self.masks[1].draw(noise,",
        "codes &= self.masks[0].draw(noise,",
        _BITS,
    ),
    Mutation(
        "mechanisms/_bits/flip_laws.py",
        "larger - smaller).astype(np.float64) / smaller",
        "larger - smaller).astype(np.float64) / larger",
        _BITS,
    ),
    Mutation(
        "mechanisms/_bits/unbiased.py",
        "lower += noise.bernoulli(fraction.astype(np.uint64))",
        "lower += noise.bernoulli(fraction.astype(np.uint64) // np.uint64(2))",
        _BITS,
    ),
    Mutation(
        "mechanisms/_bits/mask_sampling.py",
        "of_one = of_left.at(np.array([k]), left.size)",
        "of_one = of_left.at(np.array([0]), left.size)",
        "mechanisms/test_mask_sampling.py",
    ),
    Mutation(
        "mechanisms/_bits/mask_sampling.py",
        "of_left = noise.at(left, size)",
        "of_left = noise.at(left - left, size)",
        "mechanisms/test_rows.py",
    ),
    Mutation(
        "mechanisms/_bits/decoding.py",
        "return squares / float(decoder.signs[1]) ** 2 - variance",
        "return (squares - variance) / float(decoder.signs[1]) ** 2",
        "mechanisms/test_bit_flip.py",
    ),
    # Vectors.
    Mutation(
        "mechanisms/_vector/privunit.py",
        "inside = noise.bernoulli(self.cap_threshold, n)",
        "inside = noise.bernoulli(self.cap_threshold + self.cap_threshold // 1024, n)",
        _VECTORS,
    ),
    Mutation(
        "mechanisms/_vector/privunit.py",
        "np.where(inside, self.cap_probability, 1 - self.cap_probability)",
        "np.where(inside, self.cap_probability * (1 + 1e-3), 1 - self.cap_probability)",
        _VECTORS,
    ),
    Mutation(
        "mechanisms/_vector/privunit.py",
        "        released[...] = rows\n",
        "        released[...] = (rows / np.sqrt(np.einsum('ij,ij->i', rows, rows))[:, None]).astype(rows.dtype)\n",
        _SPHERE,
    ),
    Mutation(
        "mechanisms/_vector/privunit.py",
        "        along[zero], norms[zero] = 0.0, 1.0\n",
        "        norms[zero] = 1.0\n",
        _SPHERE,
    ),
    Mutation(
        "mechanisms/_vector/privunit.py",
        "        round_steps(rows, self.step)\n",
        "        rows *= self.step\n",
        "mechanisms/test_privunit.py",
    ),
    Mutation("mechanisms/_norms.py", "factors * (1 - 2 * np.finfo(values.dtype).eps), 1.0)", "factors, 1.0)", _SPHERE),
    Mutation(
        "mechanisms/_norms.py",
        "np.maximum(norms * (1 + _norm_error(values.shape[1])), radius)",
        "np.maximum(norms, radius)",
        _SPHERE,
    ),
    Mutation("mechanisms/_vector/sphere.py", "_FLOAT64_BELOW = 16\n", "_FLOAT64_BELOW = 0\n", f"{_VECTORS} {_SPHERE}"),
    Mutation("mechanisms/_vector/multivariate_laplace.py", "_SQUEEZE = 0.0331", "_SQUEEZE = 0.02", _VECTORS),
    Mutation(
        "mechanisms/_vector/multivariate_laplace.py",
        "square[unsure] / 2 + b * (1 - cube",
        "square[unsure] / 2 + shape * (1 - cube",
        _VECTORS,
    ),
    Mutation(
        "mechanisms/_vector/multivariate_laplace.py",
        "n) * (self.sensitivity / self.epsilon)",
        "n) * (1 / self.epsilon)",
        _VECTORS,
    ),
    Mutation("mechanisms/_vector/multivariate_laplace.py", "noise.at(waiting, n)", "noise", "mechanisms/test_rows.py"),
    Mutation("mechanisms/_vector/privunit.py", "noise.at(again, len(rows))", "noise", "mechanisms/test_rows.py"),
    Mutation(
        "mechanisms/_domain.py",
        "moved.data * np.repeat(factors, np.diff(moved.indptr))",
        "moved.data",
        f"{_SPHERE} mechanisms/test_projection.py",
    ),
    Mutation(
        "mechanisms/_vector/privunit.py",
        "second_moment - across * self.radius**2 * np.eye",
        "second_moment - across * np.eye",
        "mechanisms/test_privunit.py",
    ),
    Mutation(
        "mechanisms/_vector/projected_release.py",
        "np.clip(projected, -most, most)",
        "projected",
        "mechanisms/test_projection.py",
    ),
    Mutation(
        "mechanisms/_vector/projected_release.py",
        "max(2, len(self.vocabulary))",
        "2",
        "mechanisms/test_projection.py",
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
        "mechanisms/_vector/gaussian_width.py",
        "(m + 1) // 2",
        "max(1, m // 2)",
        "mechanisms/test_projection.py",
    ),
    Mutation(
        "mechanisms/_vector/gaussian_width.py",
        "math.log(n_vectors - 1) - math.log(2)",
        "-math.log(2)",
        "mechanisms/test_projection.py",
    ),
    # Answers and budgets.
    Mutation("accounting/_finite_query.py", "(words[:, None] >= below)", "(words[:, None] > below)", _ANSWERS),
    Mutation(
        "accounting/_regression_query.py",
        "np.clip(rarer, flip_threshold(self.epsilon), np.uint64(2**63))",
        "np.clip(rarer, flip_threshold(self.epsilon * 1.001), np.uint64(2**63))",
        _ANSWERS,
    ),
    Mutation(
        "accounting/_regression_query.py",
        "np.where(high <= low, rarer, ~rarer + np.uint64(1))",
        "np.where(high <= low, rarer, ~rarer)",
        _ANSWERS,
    ),
    Mutation(
        "accounting/_regression_query.py",
        "rarer = (np.minimum(low, high) * 2.0**64).astype(np.uint64)",
        "rarer = np.minimum(low, 1 - low)\n        rarer = (rarer * 2.0**64).astype(np.uint64)",
        _ANSWERS,
    ),
    Mutation(
        "accounting/_regression_query.py",
        "return noise.bernoulli(self.thresholds(X)).astype(np.int8)",
        "return (noise.words(1) < self.thresholds(X)).astype(np.int8)",
        f"{_ANSWERS} accounting/test_query.py",
    ),
    Mutation(
        "accounting/_finite_query.py",
        "words = noise.words(len(below))",
        "words = noise.words(1)",
        f"{_ANSWERS} accounting/test_query.py",
    ),
    Mutation(
        "accounting/_finite_query.py",
        "return math.log(worst) * (1 + 2.0**-50) + 2.0**-51 if",
        "return math.log(worst) * (1 - 2.0**-50) if",
        _ANSWERS,
    ),
    Mutation(
        "accounting/_decide.py",
        "if sum(cost.charge for cost in costs) <= rule.budget:",
        "if sum(cost.charge for cost in costs) <= rule.budget * 1.01:",
        _BUDGETS,
    ),
    Mutation(
        "accounting/_decide.py",
        "[*outputs, output], rule.epsilon), rule.budget)",
        "[*outputs, output], rule.epsilon), 1.01 * rule.budget)",
        "accounting/test_filters.py accounting/test_certificates.py accounting/test_decisions.py",
    ),
    Mutation("accounting/_decide.py", "    return all(\n", "    return any(\n", _BUDGETS),
    Mutation(
        "accounting/_decide.py",
        "return units_below(self.epsilon)",
        "return units_below(self.epsilon) + 1024",
        _CHARGED,
    ),
    Mutation(
        "accounting/_decide.py",
        "    after = added(spent, query)\n",
        "    after = added(spent, query) - added(np.zeros_like(spent), query) // 1000\n",
        f"{_BUDGETS} accounting/test_certified.py",
    ),
    Mutation(
        "accounting/_ledger/verification.py",
        "partial(is_established, rule, query), answers)",
        "lambda answers: rule.table_for(query) is not None, answers)",
        "accounting/test_certified.py",
    ),
    Mutation(
        "accounting/_ledger/established.py",
        'rule.name != "simplified" and all(',
        'rule.name != "simplified" and any(',
        "accounting/test_certified.py",
    ),
    Mutation(
        "accounting/_ledger/established.py",
        "if charges <= budget:",
        "if charges <= 2 * budget:",
        "accounting/test_certified.py",
    ),
    Mutation(
        "accounting/_extrema/realized_loss.py",
        "math.fsum(query.exact_epsilon for query in queries), math.inf)",
        "math.fsum(query.exact_epsilon for query in queries) * 0.99, math.inf)",
        "accounting/test_extrema.py accounting/test_certificates.py",
    ),
    Mutation("accounting/_composition.py", "* squares) + squares / 2", "* squares)", "accounting/test_filters.py"),
    Mutation(
        "accounting/_composition.py", "value * math.expm1(value) / 2", "value * value / 2", "accounting/test_filters.py"
    ),
    Mutation(
        "accounting/_composition.py", "* math.log(2 / delta)\n", "* math.log(1 / delta)\n", "accounting/test_filters.py"
    ),
    Mutation("accounting/_composition.py", "total * (1 + 2.0**-48)", "total", "accounting/test_filters.py"),
    # Releases that a ledger counts, and budgets in integers.
    Mutation(
        "accounting/_release_query.py",
        "charge = units_above(guarantee.plain_epsilon)",
        "charge = units_above(guarantee.plain_epsilon / 2)",
        _CHARGED,
    ),
    Mutation(
        "accounting/_release_query.py",
        'guarantee.model == "local" and guarantee.delta == 0 and',
        'guarantee.model == "local" and',
        _CHARGED,
    ),
    Mutation(
        "accounting/_release_query.py",
        "return None if self.row_charge is None else self.n_rows * self.row_charge",
        "return self.row_charge",
        _CHARGED,
    ),
    Mutation("accounting/_release_query.py", "return self.n_rows * self.row_zcdp", "return self.row_zcdp", _CHARGED),
    Mutation(
        "accounting/_release_query.py", "charge * charge // (2 * UNITS)", "charge * charge // (4 * UNITS)", _CHARGED
    ),
    Mutation(
        "accounting/_release_query.py",
        "if named and self.row_charge != units_above(log_ratio(*self._odds)):",
        "if False:",
        _CHARGED,
    ),
    Mutation("accounting/_release_query.py", "(charge if n > 0 else charge - (charge >> 51) - 2)", "charge", _CHARGED),
    Mutation(
        "accounting/_release_query.py", "[] if len(seen) == n_classes else [-1]", "[] if True else [-1]", _CHARGED
    ),
    Mutation(
        "accounting/_units.py",
        "return math.ceil(Fraction(nats) * UNITS)",
        "return math.floor(Fraction(nats) * UNITS)",
        _CHARGED,
    ),
    Mutation(
        "accounting/_units.py",
        "return math.floor(Fraction(nats) * UNITS)",
        "return math.ceil(Fraction(nats) * UNITS)",
        _CHARGED,
    ),
    Mutation("accounting/_units.py", "(rest <= low)", "(rest < low)", _CHARGED),
    Mutation(
        "accounting/_units.py",
        "carried = sums[..., 0] + (sums[..., 1] >> _LOW_BITS)",
        "carried = sums[..., 0]",
        _CHARGED,
    ),
    Mutation(
        "accounting/_composition.py",
        "return math.floor(root * root * UNITS * (1 - _DECIMAL_ERROR))",
        "return math.floor(2 * root * root * UNITS)",
        _CHARGED,
    ),
    Mutation(
        "accounting/_decide.py",
        "return rule.budget - max(released_loss([*asked, query], [*outputs, last])",
        "return rule.budget - min(released_loss([*asked, query], [*outputs, last])",
        _CHARGED,
    ),
    Mutation(
        "accounting/_decide.py",
        "        return rule.budget - released_loss(asked, outputs)\n",
        "        return rule.budget\n",
        _CHARGED,
    ),
    Mutation(
        "accounting/_decide.py",
        "return rule.budget - released_loss(asked, outputs) - charge_of(query)",
        "return rule.budget - released_loss(asked, outputs)",
        _CHARGED,
    ),
    Mutation(
        "accounting/_decide.py", "room == 0 and isinstance(query, ReleaseQuery) and not numbers", "room == 0", _CHARGED
    ),
    Mutation(
        "accounting/_decide.py",
        "return sum(cost.zcdp for cost in costs) <= rule.zcdp_budget",
        "return costs[-1].zcdp <= rule.zcdp_budget",
        _CHARGED,
    ),
    Mutation(
        "accounting/_extrema/realized_loss.py",
        "nats_above(units_above(found.upper) + int(charges)),",
        "nats_above(units_above(found.upper)),",
        _CHARGED,
    ),
    Mutation(
        "accounting/_ledger/established.py", "room = budget - _cost_of_releases(released)", "room = budget", _CHARGED
    ),
    Mutation(
        "accounting/_ledger/established.py",
        "(budget - rho) ** 2 >= 4 * rho * inverse",
        "(budget - rho) ** 2 >= 0",
        _CHARGED,
    ),
    Mutation(
        "accounting/_ledger/privacy_ledger.py",
        "        if isinstance(checked_query(query), ReleaseQuery):\n",
        "        if checked_query(query) is None:\n",
        _CHARGED,
    ),
    Mutation("accounting/_ledger/releasing.py", "        mechanism.encode(rows)\n", "", _CHARGED),
    Mutation("accounting/_ledger/releasing.py", "repeat=True,", "repeat=False,", _CHARGED),
    Mutation(
        "accounting/_ledger/releasing.py",
        "if not math.isfinite(query.epsilon) and self._rule.zcdp_budget is None:",
        "if False:",
        _CHARGED,
    ),
    Mutation(
        "accounting/_ledger/releasing.py",
        "any(one.n_classes != query.n_classes for one in known)",
        "not known",
        _CHARGED,
    ),
    Mutation(
        "accounting/_ledger/settings.py", 'if (delta is not None) != (rule == "approximate"):', "if False:", _CHARGED
    ),
    Mutation(
        "estimators/_base.py", "part=self._part, all_or_none=True)", "part=self._part)", "estimators/test_charged.py"
    ),
    Mutation(
        "estimators/_base.py",
        "if guarantee.delta == 0 and not math.isfinite(guarantee.plain_epsilon):",
        "if False:",
        "estimators/test_charged.py",
    ),
    Mutation("estimators/_base.py", "if (ledger is None) != (ids is None):", "if False:", "estimators/test_charged.py"),
    Mutation(
        "estimators/_guarantee_mixin.py",
        'if getattr(estimator, "ledger", None) is not None and estimator.seed is not None:',
        "if False:",
        "estimators/test_charged.py",
    ),
    Mutation(
        "mechanisms/_numeric/additive.py",
        "self.n_values * 4 ** (self.lattice_exponent + 1)",
        "self.n_values * 4**self.lattice_exponent",
        _CHARGED,
    ),
    Mutation(
        "mechanisms/_numeric/bounded_features.py",
        "return None if of_one is None else of_one * (self.n_sampled // self.mechanism.n_outputs)",
        "return of_one",
        _CHARGED,
    ),
    Mutation("mechanisms/_odds.py", "down.multiply(Decimal(least), 1 - _HAIR)", "Decimal(least)", _CHARGED),
    # Certificates: what bounds a loss, and what believes a search.
    Mutation(
        "accounting/_extrema/linear_cohort.py",
        "fits[rows] = bounds[rows] + MARGIN <= epsilon",
        "fits[rows] = True",
        "accounting/test_linear_cohort.py",
    ),
    Mutation(
        "accounting/_extrema/linear_cohort.py",
        "after[some] = losses + (epsilon - room)",
        "after[some] = losses",
        "accounting/test_ledger_memory.py",
    ),
    # Who is refused without a search, and admitted without the table.
    Mutation(
        "accounting/_extrema/lost_already.py",
        "threshold + 2 * counts @ law.allowances",
        "threshold - 0.05 * counts.any(axis=1)",
        "accounting/test_lost_already.py",
    ),
    Mutation(
        "accounting/_decide.py",
        "no |= have_lost_more(after, region.box, rule.epsilon)",
        "no |= have_lost_more(after, region.box, rule.epsilon / 2)",
        "accounting/test_lost_already.py",
    ),
    Mutation(
        "accounting/_decide.py",
        "    if not region.is_box:\n        return no\n",
        "",
        "accounting/test_lost_already.py",
    ),
    Mutation(
        "accounting/_decide.py",
        "if after is not None and room == rule.budget:",
        "if after is not None:",
        "accounting/test_ledger_memory.py",
    ),
    Mutation(
        "accounting/_ledger/book.py",
        "query.epsilon if by_table else np.inf",
        "0.0 if by_table else np.inf",
        "accounting/test_ledger_memory.py",
    ),
    Mutation(
        "accounting/_ledger/book.py",
        "query.epsilon if by_table else np.inf",
        "query.epsilon",
        "accounting/test_ledger_memory.py",
    ),
    Mutation(
        "accounting/_ledger/plan.py",
        "+ query.epsilon + 3 * MARGIN <= rule.epsilon",
        "+ 3 * MARGIN <= rule.epsilon",
        "accounting/test_ledger_memory.py",
    ),
    Mutation(
        "accounting/_ledger/book.py",
        "column[numbers] = outputs",
        "column[numbers] = 0",
        "accounting/test_ledger_memory.py",
    ),
    Mutation(
        "accounting/_extrema/linear_cohort.py",
        "    depths += vertex_rounding(law, counts)\n",
        "",
        _CERTIFIED,
        survives="the margin that is kept free of the budget is a million times as large",
    ),
    Mutation(
        "accounting/_extrema/linear_cohort.py",
        "values + depths[active] - slack[active] > epsilon",
        "values + depths[active] + slack[active] > epsilon",
        "accounting/test_linear_cohort.py accounting/test_certified.py",
    ),
    Mutation(
        "accounting/_extrema/sampled_law.py",
        "error=(4 * box.shape[1] + 64) * UNIT * magnitude + _UNDERFLOW",
        "error=0 * magnitude",
        _CERTIFIED,
    ),
    Mutation(
        "accounting/_extrema/sampled_law.py",
        "low @ up + high @ down + (self.offset - self.error)",
        "low @ up + high @ down + self.offset",
        _CERTIFIED,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "= (count @ still + (count * np.abs(slopes)) @ per_slope) * (1 + 2.0**-20)",
        "= 0.0 * (count @ still)",
        _CERTIFIED,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "np.maximum(tilt * box_low, tilt * box_high)",
        "(tilt * (box_low + box_high) / 2)",
        _CERTIFIED,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "best = np.maximum(best, np.where((low < 0) & (high > 0), sign * np.log(q), -np.inf))",
        "pass",
        _CERTIFIED,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "best = np.maximum(best, np.where((low < 1) & (high > 1), np.log(q + t) - slopes, -np.inf))",
        "pass",
        _CERTIFIED,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "(slopes > 0) & (stationary + uncertain >= np.maximum(low, 0.0))",
        "(slopes > 0) & (stationary >= np.maximum(low, 0.5))",
        _CERTIFIED,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "- slopes * w + gain",
        "- slopes * w",
        _CERTIFIED,
        survives="what is lost is of the square of the rounding that moves the stationary point",
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "np.maximum(begin, least[part] - law.error)",
        "np.maximum(begin, least[part] + law.error)",
        _CERTIFIED,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "if tree.to_the_ends and (law.region is not None or not peaks_at_vertices(law, sign)):",
        "if False:",
        _CERTIFIED,
    ),
    Mutation("accounting/_extrema/certificate.py", "(least >= -4 * law.error)", "(least >= -1e-3)", _CERTIFIED),
    Mutation(
        "accounting/_extrema/certificate.py",
        "bool(np.where(law.logistic, smooth, ramps).all())",
        "bool(np.where(law.logistic, smooth, ramps).any())",
        _CERTIFIED,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "w = sums + (law.offset + sign * law.error)",
        "w = sums + (law.offset - sign * law.error)",
        _CERTIFIED,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "return best + float(vertex_rounding(law, law.count)), region",
        "return best, region",
        _CERTIFIED,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "abs(total) - 32 * UNIT * math.fsum(sizes)",
        "abs(total) + 1e-6 * math.fsum(sizes)",
        _CERTIFIED,
    ),
    # Domains: what a record can be, how it is moved, and what is proved of it.
    Mutation("mechanisms/_linked.py", "np.where(is_tie, self.fallback, chosen)", "chosen", "mechanisms/test_linked.py"),
    Mutation(
        "accounting/_extrema/realized_loss.py",
        "np.where(np.isinf(own), 0.0, own)",
        "own",
        "accounting/test_decisions.py",
    ),
    Mutation(
        "accounting/_extrema/realized_loss.py",
        "max(tol, 8 * law.allowance)",
        "tol",
        "accounting/test_domains.py",
    ),
    Mutation(
        "mechanisms/_linked.py",
        "chosen = np.where(largest < 0.5, -1, chosen)",
        "chosen = np.where(largest < 0.6, -1, chosen)",
        "mechanisms/test_linked.py",
    ),
    Mutation(
        "mechanisms/_linked.py",
        "return np.asarray((totals <= limits).all(axis=1))",
        "return np.asarray((totals <= limits + 1).all(axis=1))",
        "mechanisms/test_linked.py",
    ),
    Mutation(
        "mechanisms/_linked.py",
        "totals += rows[:, column, None].astype(np.float64) * coef[:, column]",
        "totals = rows.astype(np.float64) @ coef.T",
        "mechanisms/test_linked.py",
    ),
    Mutation(
        "mechanisms/_transformed.py",
        'unknown = step.handle_unknown != "error"',
        "unknown = False",
        "mechanisms/test_transformed.py",
    ),
    Mutation(
        "mechanisms/_transformed.py",
        "    if isinstance(declared, str):\n",
        "    if False:\n",
        "mechanisms/test_transformed.py",
    ),
    Mutation(
        "accounting/_extrema/region.py",
        "limits = limits + (4 * d + 8) * UNIT * (reach + np.abs(limits))",
        "limits = limits + 0 * reach",
        _DOMAINS,
    ),
    Mutation(
        "accounting/_extrema/region.py",
        "np.full(len(low), block.at_most_one) &",
        "np.full(len(low), False) &",
        _DOMAINS,
    ),
    Mutation(
        "accounting/_extrema/region.py",
        "possible &= (high[:, block.columns] >= 1).any(axis=1)",
        "possible &= (high[:, block.columns] >= 1).all(axis=1)",
        _DOMAINS,
    ),
    Mutation(
        "accounting/_extrema/region.py",
        "paid = np.maximum(np.nan_to_num(prices, posinf=0.0, neginf=0.0), 0.0)",
        "paid = np.nan_to_num(prices, posinf=0.0, neginf=0.0)",
        _DOMAINS,
    ),
    Mutation(
        "accounting/_extrema/region.py",
        "held = (left <= self._loose_limits).all(axis=1)",
        "held = (left + 0.1 <= self._loose_limits).all(axis=1)",
        _DOMAINS,
    ),
    # Boxes of a domain that are searched together.
    Mutation("accounting/_extrema/region.py", "self.ends[0] + digit, 0", "digit, 0", _CHOICES),
    Mutation("accounting/_extrema/relaxation.py", "(scaled * offset).sum(axis=1)", "scaled @ problem.offset", _CHOICES),
    Mutation("accounting/_extrema/region_choices.py", "@ self._half + law.offset", "@ self._half", _CHOICES),
    Mutation(
        "accounting/_extrema/region_choices.py", "levels.append(lower + chosen)", "levels.append(lower)", _CHOICES
    ),
    Mutation("accounting/_extrema/region_choices.py", "nodes[self._codes]", "nodes[: len(self._codes)]", _CHOICES),
    Mutation(
        "accounting/_extrema/region_choices.py",
        "return self._sign * self._search.multipliers",
        "return self._search.multipliers",
        _CHOICES,
    ),
    Mutation("accounting/_extrema/region_search.py", ", (self._cut_boxes, _MAX_NODES)]", "]", _CHOICES),
    Mutation(
        "accounting/_extrema/realized_loss.py", "math.nextafter(own + shares, math.inf)", "max(own, shares)", _ADDED
    ),
    Mutation(
        "accounting/_extrema/region.py",
        "np.nan_to_num(np.clip(given, -LARGEST, LARGEST), nan=-LARGEST)",
        "np.clip(given, -LARGEST, LARGEST)",
        _DOMAINS,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "np.where(whole, np.floor(middle) + 1, middle)",
        "np.where(whole, np.floor(middle) + 2, middle)",
        _DOMAINS,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "bounds_at(law, sign, sums, kinked=region.is_finite)",
        "bounds_at(law, sign, sums, kinked=False)",
        _DOMAINS,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "if not region.is_finite and not peaks_at_vertices(law, sign):",
        "if False:",
        _DOMAINS,
    ),
    Mutation("accounting/_extrema/point_cohort.py", "fits &= loss", "fits |= loss", _DOMAINS),
    Mutation("accounting/_extrema/point_cohort.py", "(sums + table[column])", "sums", _DOMAINS),
    Mutation(
        "accounting/_extrema/point_cohort.py",
        "after[:, column] += 1",
        "after[:, column] += 0",
        _DOMAINS,
        survives="it counts in what roundings are allowed alone, of which one answer more is a part in a million",
    ),
    Mutation(
        "estimators/_callbacks.py",
        "history.call_on_fit_task_end(estimator=self)",
        "history.call_on_fit_task_end(estimator=self, X=decision)",
        "estimators/test_callbacks.py",
        needs="sklearn.callback",
    ),
    Mutation(
        "estimators/_bayesian_filter.py",
        "self._region.move(X[positions])",
        "X[positions]",
        "estimators/test_domain_of_people.py",
    ),
    # A ledger's file, its lock and its chain.
    Mutation(
        "accounting/_ledger/sqlite_store.py",
        "if self._memory is not None and self._process != os.getpid():",
        "if False:",
        _FILES,
    ),
    Mutation(
        "accounting/_ledger/sqlite_store.py",
        "                    if os.getpid() != process:\n",
        "                    if False:\n",
        _FILES,
    ),
    Mutation(
        "accounting/_ledger/store.py",
        "for head in (self._head, remembered):",
        "for head in (self._head,):",
        _FILES,
    ),
    Mutation(
        "accounting/_ledger/store.py",
        "for head in (self._head, remembered):",
        "for head in (remembered,):",
        _FILES,
        survives="the companion remembers as much as the process does, and more",
    ),
    Mutation("accounting/_ledger/sqlite_store.py", "if status.st_nlink != 1:", "if False:", _FILES),
    Mutation(
        "accounting/_ledger/store.py",
        'if any(known not in (None, settings["token"])',
        'if any(known in () and known not in (None, settings["token"])',
        _FILES,
    ),
    Mutation("accounting/_ledger/sqlite_store.py", 'if journal != "delete":', "if False:", _FILES),
    Mutation(
        "accounting/_ledger/sqlite_store.py",
        "            keep_forever(self._connection)\n",
        "            pass\n",
        _FILES,
    ),
    Mutation(
        "accounting/_ledger/store.py",
        "for store in list(_STORES) if store.lock.acquire(timeout=BUSY_SECONDS))",
        "for store in ())",
        _FILES,
    ),
    Mutation("accounting/_ledger/sqlite_store.py", "PRAGMA synchronous = EXTRA", "PRAGMA synchronous = OFF", _FILES),
    Mutation(
        "accounting/_ledger/migration.py", 'for change in ("update", "delete")', 'for change in ("update",)', _FILES
    ),
    Mutation(
        "accounting/_ledger/companion.py", "(fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)", "fcntl.LOCK_SH", _FILES
    ),
    Mutation("accounting/_ledger/companion.py", "        if prove:\n", "        if False:\n", _FILES),
    Mutation(
        "accounting/_ledger/companion.py",
        "if os.path.samestat(os.fstat(descriptor), os.lstat(companion_of(path))):",
        "if True:",
        _FILES,
    ),
    Mutation(
        "accounting/_ledger/companion.py", "        os.close(_DESCRIPTORS.pop())", "        _DESCRIPTORS.pop()", _FILES
    ),
    Mutation(
        "accounting/_ledger/companion.py",
        'exclusive = write or os.path.exists(f"{path}-journal")',
        "exclusive = write",
        _FILES,
        survives="it is asked once more when the lock is held, and the lock made exclusive then",
    ),
    Mutation(
        "accounting/_ledger/records.py",
        "json.dumps([previous, list(entry), list(identities)])",
        "json.dumps([EMPTY.chain, list(entry), list(identities)])",
        _FILES,
    ),
    Mutation(
        "accounting/_ledger/records.py",
        "json.dumps([previous, list(entry), list(identities)])",
        "json.dumps([previous, list(entry)])",
        _FILES,
    ),
    Mutation(
        "accounting/_ledger/records.py",
        "json.dumps([previous, list(entry), list(identities)])",
        "json.dumps([previous, list(identities)])",
        _FILES,
    ),
    Mutation(
        "accounting/_ledger/records.py",
        "np.column_stack([numbers, outputs])",
        "np.column_stack([numbers, numbers])",
        _FILES,
    ),
    Mutation("accounting/_ledger/schema.py", "json.dumps([token, name, value])", "json.dumps([name, value])", _FILES),
    Mutation(
        "accounting/_ledger/book.py",
        " or not (untold or digest in (None, told.value))",
        "",
        _FILES,
    ),
    Mutation(
        "accounting/_ledger/migration.py",
        "f'WHEN NOT EXISTS (",
        "f'WHEN EXISTS (",
        _FILES,
    ),
    Mutation("accounting/_ledger/sqlite_store.py", "if version in MIGRATED and opening:", "if False:", _FILES),
    # Calls that are made again, erased answers, and many hosts.
    Mutation("accounting/_ledger/privacy_ledger.py", "if before is not None:", "if False:", _CALLS),
    Mutation("accounting/_ledger/privacy_ledger.py", "if request != call.request:", "if False:", _CALLS),
    Mutation("accounting/_ledger/privacy_ledger.py", "np.where(fresh, last, earlier)", "last", _CALLS),
    Mutation("accounting/_ledger/plan.py", "hashlib.sha256(own).hexdigest()", "own.decode()", _CALLS),
    Mutation("accounting/_ledger/erasures.py", "return rows is None or _hash(rows) == request", "return True", _ERASED),
    Mutation("accounting/_ledger/erasures.py", "    connection.executemany(_ERASE_ANSWER, rows)\n", "", _ERASED),
    Mutation("accounting/_ledger/book.py", "erasures.last > self.release", "False", _ERASED),
    # Codes, bits and features that are counted by what was released of them.
    Mutation(
        "accounting/_release_query.py",
        "self.own_count * (TWO_64 - self.other_count), self.other_count * (TWO_64 - self.own_count)",
        "self.own_count, self.other_count",
        _PARTS,
    ),
    Mutation("accounting/_release_query.py", "if output >> code & 1]", "if not output >> code & 1]", _PARTS),
    Mutation("accounting/_release_query.py", "return [1 << code for code", "return [0 << code for code", _PARTS),
    Mutation("accounting/_release_query.py", "most = _MOST_BITS if self.own_count else None", "most = None", _PARTS),
    Mutation(
        "accounting/_release_query.py",
        "most = self.own_count or TWO_64 // self.n_classes",
        "most = TWO_64 // self.n_classes",
        _PARTS,
    ),
    Mutation("accounting/_release_query.py", "and len(mechanism.columns) == 1:", "and mechanism.columns:", _PARTS),
    Mutation("accounting/_ledger/established.py", "max(found) - min(found)", "Fraction(0)", _PARTS),
    Mutation("accounting/_ledger/established.py", "(Fraction(1, 10**40) if apart else 0)", "1", _PARTS),
    Mutation("accounting/_ledger/book.py", "tokens.setdefault(one, os.urandom(16))", "bytes(16)", _PARTS),
    Mutation("accounting/_ledger/feature_question.py", "self.region.move(records)", "records", _FEATURES),
    Mutation("accounting/_ledger/feature_question.py", "count(part) != 1", "count(part) < 1", _FEATURES),
    Mutation("accounting/_release_query.py", "else [*sorted(told), untold]", "else sorted(told)", _PARTS),
    Mutation(
        "accounting/_release_query.py", "codes = sorted(told) if untold", "codes = [untold or 0] if untold", _PARTS
    ),
    Mutation("accounting/_ledger/established.py", "codes = [*old, new] if", "codes = [new] if", _PARTS),
    Mutation(
        "accounting/_ledger/feature_question.py",
        "if region.in_block[column] or len(region.limits):",
        "if False:",
        _FEATURES,
    ),
    Mutation(
        "accounting/_ledger/feature_question.py",
        '"linear" if inside else "truncated"',
        '"linear"',
        _FEATURES,
        survives="a prediction outside of the output bounds is clipped whatever the kind, and certified so",
    ),
    Mutation("accounting/_ledger/feature_question.py", "law.exact_epsilon)", "2 * law.exact_epsilon)", _FEATURES),
    Mutation(
        "estimators/_labels.py",
        "json.dumps([self.part, self.classes_.tolist()], default=str)",
        "self.part",
        "estimators/test_charged.py",
    ),
    # Missing values.
    Mutation("estimators/_bayesian_filter.py", "features=names, missing=self._missing)", "features=names)", _MISSING),
    Mutation("estimators/_bayesian_filter.py", "np.where(np.isnan(X), self._missing, X)", "np.nan_to_num(X)", _MISSING),
    Mutation("estimators/_from_estimator.py", "filled = is_frozen and", "filled = True and", _MISSING),
    # The probability of one class.
    Mutation("accounting/_softmax_query.py", "- scores.max(axis=1, keepdims=True)", "", _SOFTMAX),
    Mutation("accounting/_softmax_query.py", "odds[:, self.position] / total", "odds[:, self.position]", _SOFTMAX),
    Mutation("accounting/_softmax_query.py", '"position": self.position}', '"position": 0}', _SOFTMAX),
    Mutation("accounting/_extrema/realized_loss.py", "2 * len(outputs) * query.rounding", "0.0", _SOFTMAX),
    Mutation("accounting/_extrema/realized_loss.py", "own + shares, math.inf)", "own, 1)", _SOFTMAX),
    Mutation("accounting/_extrema/realized_loss.py", "nats_above(len(outputs) *", "nats_above(1 *", _SOFTMAX),
    Mutation("estimators/_from_estimator.py", "- theirs) <= 1e-5).all())", "- theirs) <= 1e5).all())", _OF_CLASS),
    Mutation("estimators/_bayesian_filter.py", "of_class=self.of_class\n", "\n", _OF_CLASS),
    # Released rows that are handed out again.
    Mutation("accounting/_ledger/erasures.py", "    connection.executemany(_ERASE_KEPT, rows)\n", "", _AGAIN),
    Mutation("accounting/_ledger/plan.py", "*([] if contents is None else [contents])", "", _AGAIN),
    Mutation("accounting/_ledger/releasing.py", "[parameters_of(mechanism), part,", "[part,", _AGAIN),
    Mutation("accounting/_ledger/releasing.py", "released.dtype.str, people]", "released.dtype.str]", _AGAIN),
    Mutation("accounting/_ledger/releasing.py", "idempotency_key=key,", "idempotency_key=None,", _AGAIN),
    Mutation("accounting/_ledger/kept_rows.py", 'json.dumps(self.people[position]).encode("ascii")', 'b""', _AGAIN),
    Mutation("accounting/_ledger/kept_rows.py", "secrets.token_bytes(_NONCE_BYTES)", "bytes(_NONCE_BYTES)", _AGAIN),
    Mutation(
        "accounting/_ledger/postgres_schema.py",
        "CASE WHEN {_may_see(owner)} THEN t.sealed",
        "CASE WHEN true THEN t.sealed",
        _AGAIN,
        needs=_DRIVER,
    ),
    Mutation("estimators/_bayesian_filter.py", "idempotency_key=key,", "idempotency_key=None,", _QUESTIONS_AGAIN),
    Mutation(
        "estimators/_bayesian_filter.py",
        "if key is not None and ids is None and self.ids is None:",
        "if False:",
        _QUESTIONS_AGAIN,
    ),
    Mutation("accounting/_ledger/eraser.py", "certified if certified < composed else None", "certified", _ERASED),
    Mutation(
        "accounting/_ledger/plan.py", "mark, digest, key is not None, kept)", "mark, digest, False, kept)", _CALLS
    ),
    Mutation(
        "accounting/_release_query.py",
        "return cls(_ERASED, charge, sum(zcdp_of(query) for query in queries))",
        "return cls(_ERASED, charge, 0 if charge is None else _zcdp_of_pure(charge))",
        _ERASED,
    ),
    Mutation(
        "accounting/_ledger/eraser.py",
        "query = ReleaseQuery.erasure(queries, loss)",
        "query = ReleaseQuery.erasure(queries[:1], loss)",
        _ERASED,
    ),
    Mutation(
        "accounting/_ledger/store.py",
        "self._check_published, Head(int(match[1]), match[2])",
        "self._check_published, Head(0, match[2])",
        _ERASED,
    ),
    Mutation("accounting/_ledger/sqlite_store.py", "PRAGMA secure_delete = ON", "PRAGMA secure_delete = OFF", _ERASED),
    Mutation("accounting/_ledger/book.py", "number + shift * (output < 0)", "number", _ERASED, needs=_DRIVER),
    Mutation(
        "accounting/_release_query.py",
        "if isinstance(query, ReleaseQuery) and query.part is None:\n            return query",
        "if isinstance(query, ReleaseQuery):\n            return query",
        _ERASED,
        needs=_DRIVER,
    ),
    Mutation(
        "accounting/_ledger/postgres_schema.py",
        "CASE WHEN {may_see} THEN t.output",
        "CASE WHEN true THEN t.output",
        _ERASED,
        needs=_DRIVER,
    ),
    Mutation(
        "accounting/_ledger/postgres_schema.py",
        "CASE WHEN {may_see} THEN t.salt",
        "CASE WHEN true THEN t.salt",
        _ERASED,
        needs=_DRIVER,
    ),
    Mutation(
        "accounting/_ledger/postgres_schema.py",
        "IF NEW.tenant <> current_user THEN",
        "IF false THEN",
        _ERASED,
        needs=_DRIVER,
    ),
    Mutation(
        "accounting/_ledger/postgres_schema.py",
        'f"GRANT INSERT ON ',
        'f"GRANT INSERT, UPDATE ON ',
        _HOSTS,
        needs=_DRIVER,
    ),
    Mutation(
        "accounting/_ledger/postgres_schema.py",
        '_CHANGES = ("update", "delete", "truncate")',
        '_CHANGES = ("update", "delete")',
        _HOSTS,
        needs=_DRIVER,
    ),
    Mutation(
        "accounting/_ledger/records.py",
        "r.query = :query AND r.tenant = :tenant",
        "r.query = :query AND :tenant = :tenant",
        _ERASED,
        needs=_DRIVER,
    ),
    Mutation(
        "accounting/_ledger/postgres_store.py",
        '"SERIALIZABLE" if write else',
        '"READ COMMITTED" if write else',
        _HOSTS,
        needs=_DRIVER,
    ),
    Mutation(
        "accounting/_ledger/postgres_store.py", "WHEN 'off' THEN 'on'", "WHEN 'off' THEN 'off'", _HOSTS, needs=_DRIVER
    ),
    Mutation("accounting/_ledger/postgres_store.py", 'if fsync != "on":', "if False:", _HOSTS, needs=_DRIVER),
    Mutation(
        "accounting/_ledger/book.py",
        "self._spent[numbers, 2:]",
        "self._spent[numbers, :2]",
        "accounting/test_deltas.py",
    ),
    Mutation(
        "accounting/_ledger/reader.py", "ledger._store.check_head(head)", "pass", "accounting/test_ledger_erasing.py"
    ),
    # A connection that is lost while somebody reads is no answer, and no fault of the record.
    Mutation(
        "accounting/_ledger/store.py",
        "ledger._store.repeated(partial(read, ledger, *arguments, **options))",
        "read(ledger, *arguments, **options)",
        _HOSTS,
        needs=_DRIVER,
    ),
    Mutation(
        "accounting/_ledger/verification.py",
        "    except ConflictError:\n",
        "    except ZeroDivisionError:\n",
        _HOSTS,
        needs=_DRIVER,
    ),
    Mutation("accounting/_units.py", "math.inf if one >= BEYOND_SUMS else", "", "accounting/test_units.py"),
    Mutation(
        "accounting/_ledger/reader.py",
        'if (self.delta is None) == (self.rule == "approximate"):',
        "if False:",
        _HOSTS,
        needs=_DRIVER,
    ),
    Mutation(
        "accounting/_ledger/postgres_store.py",
        "is undone.\n        session.rollback()",
        "is undone.\n        session.commit()",
        _HOSTS,
        needs=_DRIVER,
    ),
    Mutation("accounting/_ledger/postgres_store.py", ".splitlines()[0]", "", _HOSTS, needs=_DRIVER),
    Mutation(
        "accounting/_ledger/postgres_store.py",
        "if os.getpid() != self._process:",
        "if False:",
        "accounting/test_ledger_file.py",
        needs=_DRIVER,
    ),
    Mutation(
        "accounting/_ledger/postgres_store.py",
        "if state in _RETRIED or (lost and self._was_open):",
        "if False:",
        _HOSTS,
        needs=_DRIVER,
    ),
    # The guarantee of a whole, what was promised, and who people are.
    Mutation("estimators/_composition.py", "if given.labels_raw and not ignores_labels(step):", "if False:", _WHOLES),
    Mutation(
        "estimators/_composition.py", "if effect.may_overflow and effect.largest > _LARGEST:", "if False:", _WHOLES
    ),
    Mutation("estimators/_composition.py", "if self.passing and not leaks:", "if False:", _WHOLES),
    Mutation(
        "estimators/_composition.py",
        "self.parts += [(called, guarantee)] * given.times",
        "self.parts += [(called, guarantee)]",
        _WHOLES,
    ),
    Mutation(
        "estimators/_composition.py",
        "epsilon=product_above(part.epsilon, times)",
        "epsilon=part.epsilon * times",
        _WHOLES,
    ),
    Mutation("estimators/_composition.py", "given.times * (2 if step.check_inverse else 1)", "given.times", _WHOLES),
    Mutation(
        "estimators/_composition.py",
        "given.times * (count_search(search) + given.transformed)",
        "given.times * count_search(search)",
        _WHOLES,
    ),
    Mutation("estimators/_ensembles.py", "* (2 if scored_twice else 1) + 1", "* (2 if scored_twice else 1)", _WHOLES),
    Mutation(
        "estimators/_composition.py",
        "product_above(stretch, float_above(factor))",
        "stretch * factor",
        _WHOLES,
    ),
    Mutation("estimators/_composition.py", "    return math.nextafter(norm, math.inf)\n", "    return norm\n", _WHOLES),
    Mutation(
        "estimators/_composition.py",
        "given.raw and callable(columns) and type(columns) is not make_column_selector",
        "False",
        _WHOLES,
    ),
    Mutation("estimators/_selected_columns.py", "< len(columns)\n", "< 0\n", _WHOLES),
    Mutation("estimators/_composition.py", "norm = math.hypot(*known)", "norm = max(known)", _WHOLES),
    Mutation("estimators/_guarantee_mixin.py", "        if changed:\n", "        if False:\n", _PROMISES),
    Mutation(
        "estimators/_guarantee_mixin.py",
        '_may_change = frozenset({"n_jobs", "verbose"})',
        '_may_change = frozenset({"n_jobs", "verbose", "seed"})',
        _PROMISES,
    ),
    Mutation(
        "estimators/_guarantee_mixin.py", "    if type(before) is not type(now):\n        return False\n", "", _PROMISES
    ),
    Mutation(
        "estimators/_guarantee_mixin.py",
        "return before.dtype == now.dtype and np.array_equal(before, now)",
        "return before.shape == now.shape",
        _PROMISES,
    ),
    Mutation("estimators/_ledgers.py", "_WHOLE_IN_SINGLE = 2.0**24", "_WHOLE_IN_SINGLE = 2.0**25", _PEOPLE),
    Mutation("estimators/_ledgers.py", "& (ids == np.floor(ids))", "", _PEOPLE),
    Mutation("estimators/_ledgers.py", "if where in names and where in levels:", "if False:", _PEOPLE),
    Mutation("estimators/_ledgers.py", "if column != position]", "if True]", _PEOPLE),
    # A radius that is read from the rows, a person in two cohorts, and limits that nobody looks at.
    Mutation(
        "learning/_tasks.py",
        "np.asarray(u / self.radius)",
        "np.asarray(u / np.abs(u).max())",
        "learning/test_tasks.py",
    ),
    Mutation(
        "learning/_simulation.py", "asked += len(cohort)", "asked += len(cohort) - 1", "learning/test_regression.py"
    ),
    Mutation("learning/_person.py", "if not cost <= left:", "if False:", "learning/test_tasks.py"),
    Mutation("learning/_person.py", "self._left = 0.0", "self._left -= 0.0", "learning/test_tasks.py"),
    Mutation("learning/_tasks.py", "if report.task != self.hash:", "if False:", "learning/test_tasks.py"),
    Mutation(
        "learning/_tasks.py", "any(abs(total) > most for total in report.sums)", "False", "learning/test_tasks.py"
    ),
    Mutation(
        "learning/_simulation.py",
        "of_cohorts.permutation(len(y))",
        "np.arange(len(y))",
        "learning/test_regression.py",
    ),
    Mutation(
        "estimators/_composition.py",
        "self.of_targets |= is_model",
        "self.of_targets |= False",
        "estimators/test_private_guarantees.py",
    ),
    Mutation(
        "estimators/_composition.py",
        " and not (type(transformer) is FunctionTransformer and transformer.func is None):",
        " and type(transformer) is not FunctionTransformer:",
        "estimators/test_private_guarantees.py",
    ),
    Mutation("learning/_person.py", "with self._lock:", "if True:", "learning/test_attacks.py"),
    Mutation("learning/_person.py", "if os.getpid() != self._pid:", "if False:", "learning/test_attacks.py"),
    Mutation("learning/_person.py", "def __reduce_ex__(", "def _reduce_ex(", "learning/test_attacks.py"),
    Mutation("learning/_tasks.py", "any(high - low < 1 / _MOST for", "any(high <= low for", "learning/test_attacks.py"),
    Mutation("learning/_protocol.py", "total.n_people > self.n_wanted:", "False:", "learning/test_attacks.py"),
    Mutation("learning/_protocol.py", "self._state = before", "pass", "learning/test_attacks.py"),
    Mutation("learning/_protocol.py", "if not fits:", "if False:", "learning/test_attacks.py"),
    Mutation(
        "learning/_tasks.py",
        "self._mechanism.release(self.told(X, y), noise).rows",
        "self._mechanism.release(self.told(X, y), noise).rows + 0.01 * self.told(X, y)",
        "study/test_audit_tasks.py",
    ),
    Mutation(
        "mechanisms/_vector/privunit.py",
        "np.logaddexp(*of_signs) - math.log(2)",
        "np.maximum(*of_signs)",
        "study/test_audit_tasks.py",
    ),
    Mutation(
        "learning/_tasks.py",
        "np.unique(rows % len(target)).size < len(rows):",
        "False:",
        "learning/test_attacks.py",
    ),
    Mutation(
        "estimators/_learning.py",
        ".spawn(3 + estimator._n_calls)[-1]",
        ".spawn(3)[-1]",
        "estimators/test_private_guarantees.py",
    ),
    # A task for people who come later that is not the one that was frozen, answers that count twice, a filter
    # that believes too much.
    Mutation(
        "learning/_protocol.py",
        "        for report in several:\n            task.check(report)\n        total = Report.total([Report",
        "        total = Report.total([Report",
        "learning/test_classification.py",
    ),
    Mutation(
        "learning/_protocol.py",
        'self._state = dict(last["before"])',
        "pass",
        "learning/test_classification.py learning/test_regression.py",
    ),
    Mutation(
        "learning/_classification.py",
        "functionals = functionals[:n_terms, 1 - self.fit_intercept : -1]",
        "functionals = functionals[:n_terms, : n_terms]",
        "learning/test_classification.py",
    ),
    Mutation(
        "learning/_classification.py",
        'moved[:, :1], left = step(np.array(state["of_constant"])',
        'moved[:, :1], left = step(100 * np.array(state["of_constant"])',
        "learning/test_classification.py",
    ),
    Mutation(
        "learning/_classification.py",
        "min(1.0, kept / way)",
        "min(1.0, kept)",
        "learning/test_classification.py",
    ),
    Mutation(
        "learning/_likelihood.py",
        "- gain @ curvature @ covariance",
        "- gain @ covariance",
        "learning/test_likelihood.py",
    ),
    Mutation(
        "learning/_likelihood.py",
        "shortened = probabilities * np.minimum(1,",
        "shortened = probabilities * np.maximum(1,",
        "learning/test_likelihood.py",
    ),
    Mutation(
        "estimators/_linear_classifier.py",
        "rows, codes = self._records(X, y, self.classes_, reset=False)",
        "rows, codes = self._records(X, y, None, reset=True)",
        "estimators/test_private_logistic.py",
    ),
    # The discriminants: what a radius, a centre or a claim is made of, and what is counted.
    Mutation("learning/_protocol.py", "self._state |= later | {", "self._state |= {", "learning/test_discriminant.py"),
    Mutation(
        "learning/_discriminant.py",
        """steps.append(("products", int(_PRODUCT_SHARE * n)))""",
        """steps.append(("products", n))""",
        "learning/test_discriminant.py",
    ),
    Mutation(
        "learning/_discriminant.py",
        "n - sum(wanted for _, wanted in [*steps, *ends])",
        "n - sum(wanted for _, wanted in steps)",
        "learning/test_discriminant.py",
    ),
    Mutation(
        "learning/_discriminant.py",
        "self.n_classes - 1), self._tensor_length}",
        "self.n_classes - 1)}",
        "learning/test_discriminant.py",
        "The lengths' guarantees differ by the last digits of a calibration, which the margin of each covers.",
    ),
    Mutation("learning/_releases.py", "np.linalg.inv(flip_matrix)", "flip_matrix", "learning/test_discriminant.py"),
    Mutation(
        "learning/_linear_rule.py",
        "size > noise * (1 + _CLEARLY * math.sqrt(2 / degrees))",
        "size > 0",
        "learning/test_discriminant.py",
    ),
    Mutation(
        "estimators/_linear_classifier.py",
        'attach_guarantee(self, self._promise(protocol.guarantee()), "the classes" if learnt else "")',
        "attach_guarantee(self, self._promise(protocol.guarantee()))",
        "estimators/test_discriminants.py",
    ),
    Mutation(
        "estimators/_private_discriminant.py",
        "if self.public is None:\n            return guarantee",
        "if True:\n            return guarantee",
        "estimators/test_discriminants.py",
    ),
    Mutation(
        "estimators/_noise_aware_discriminant.py",
        "guarantee if label_mechanism is None else guarantee + own_guarantee(label_mechanism)",
        "guarantee",
        "estimators/test_discriminants.py",
    ),
    Mutation(
        "estimators/_composition.py",
        '                self.parts += [(_join(name, "label_mechanism"), labels)] * given.times\n            elif',
        "                pass\n            elif",
        "estimators/test_discriminants.py",
    ),
    # Reports of other tasks, another law after the fit, and what a release counts for that was left out.
    Mutation(
        "learning/_moments.py",
        "_vector_lengths(self) -> set[int]:\n        lengths = {max(2, self.n_coordinates)}",
        "_vector_lengths(self) -> set[int]:\n        return {max(2, self.n_coordinates)}",
        "learning/test_moments.py",
    ),
    Mutation(
        "learning/_noise_of_products.py", "(total - first * second)", "total", "learning/test_noise_of_products.py"
    ),
    Mutation(
        "estimators/_private_moments.py", "        self._check_unchanged()\n", "", "estimators/test_private_moments.py"
    ),
    Mutation(
        "estimators/_noise_aware_regression.py",
        "if self.target_mechanism is not None:\n            whole",
        "if False:\n            whole",
        "estimators/test_noise_aware_regression.py",
    ),
    Mutation(
        "estimators/_released_rows.py",
        " or isinstance(mechanism.domain, Codes)",
        "",
        "estimators/test_noise_aware_regression.py",
    ),
    # Shuffled answers: what is cut off, spread or rounded the wrong way, and people who hide nobody.
    Mutation("mechanisms/_lattice_sums.py", "        lost += cost\n", "", "mechanisms/test_shuffling.py"),
    Mutation("mechanisms/_lattice_sums.py", "+= up * odd", "+= 0 * odd", _SHUFFLED),
    Mutation(
        "mechanisms/_lattice_sums.py",
        "    kept[0] += masses[:n_left].sum()\n",
        "",
        "mechanisms/test_shuffling.py",
    ),
    Mutation("mechanisms/_shuffling.py", "        return 0.5, 0.5", "        return 0.6, 0.4", _SHUFFLED),
    Mutation("mechanisms/_shuffling.py", "share = 1 / (odds + 1)", "share = 1 / odds", _SHUFFLED),
    Mutation(
        "mechanisms/_shuffling.py",
        "up = np.minimum(position - below + 2.0**-38, 1.0)",
        "up = np.zeros(position.size)",
        _SHUFFLED,
    ),
    Mutation("mechanisms/_shuffling.py", "        if now <= 0:\n", "        if now <= 1:\n", _SHUFFLED),
    Mutation(
        "mechanisms/_shuffling.py",
        "np.maximum.at(merged.own",
        "np.minimum.at(merged.own",
        "mechanisms/test_shuffling.py",
    ),
    Mutation("mechanisms/_guarantee.py", "        check_pure_local(self)\n", "", "mechanisms/test_guarantee.py"),
    # What a table of steps shows: another guarantee's steps, no leak, markup of a name, and figures after a change.
    Mutation(
        "mechanisms/_guarantee.py",
        "if self.parts and not add_up(self.parts, self.epsilon, self.delta):",
        "if False:",
        "mechanisms/test_guarantee_steps.py",
    ),
    Mutation(
        "mechanisms/_guarantee.py",
        "self.parts and self.basis == sentence(self.parts)",
        "self.parts",
        "mechanisms/test_guarantee_steps.py",
    ),
    Mutation(
        "estimators/_composition.py", "parts=unbounded + steps", "parts=unbounded", "mechanisms/test_guarantee_steps.py"
    ),
    Mutation("_tables.py", "{html.escape(text)}", "{text}", "mechanisms/test_guarantee.py"),
    Mutation(
        "estimators/_guarantee_mixin.py",
        'return "no privacy guarantee: changed after fit"',
        "return estimator._guarantee_at_fit[0].headline()",
        "estimators/test_notebook.py",
    ),
    Mutation("accounting/_shuffle.py", "    check_pure_local(local)\n", "", "accounting/test_shuffle.py"),
    Mutation("accounting/_shuffle.py", "min(n - colluding, MOST_PEOPLE)", "min(n, MOST_PEOPLE)", _SHUFFLED),
    Mutation(
        "accounting/_shuffle.py",
        "return 1 / (1 + math.exp(gap)) * (1 + 2.0**-50), 1 / (1 + math.exp(-gap)) * (1 + 2.0**-50)",
        "return 1.0, 0.0",
        "accounting/test_shuffle.py",
    ),
    Mutation("accounting/_shuffle.py", "self.rounds, measure, budget", "1, measure, budget", _SHUFFLED),
    Mutation("accounting/_blanket_laws.py", "least = (1 - p) / (1 - q)", "least = (1 - q) / (1 - q)", _SHUFFLED),
    Mutation("study/_federated/hashed_labels.py", "apart = max(", "apart = min(", "study/test_federated_models.py"),
    Mutation(
        "study/_federated/hashed_labels.py", "(2 * self.n_hashes)", "self.n_hashes", "study/test_federated_models.py"
    ),
    Mutation(
        "study/_federated/hashed_labels.py",
        "seeded=self.seed is not None",
        "seeded=False",
        "study/test_federated_models.py",
    ),
    Mutation("study/_federated/settings.py", "bound / math.sqrt(3) if", "bound if", "study/test_federated_models.py"),
    Mutation(
        "study/_federated/settings.py",
        'if parameters.get("norm") == "unit"',
        "if True",
        "study/test_federated_models.py",
    ),
    Mutation(
        "study/_federated/settings.py",
        "self.size * math.sqrt(gradients.shape[1])",
        "self.size * gradients.shape[1]",
        "study/test_federated_models.py",
    ),
    Mutation("study/_federated/settings.py", "self.perturbs in _ONE_BY_ONE", "False", "study/test_federated_models.py"),
    Mutation(
        "study/_federated/learning.py",
        "np.clip(theta - step * gradients, -bound, bound)",
        "(theta - step * gradients)",
        "study/test_federated_models.py",
    ),
    Mutation("mechanisms/_sparse_domain.py", "small = order[rank >= most]", "small = order[:0]", _SPARSE),
    Mutation("mechanisms/_sparse_domain.py", 'kind="stable")[:, most:]', 'kind="stable")[:, 2 * most :]', _SPARSE),
    Mutation("mechanisms/_vector/sparse_stretch.py", "left.any()", "left.max() > prime", _SPARSE),
    Mutation("mechanisms/_vector/sparse_stretch.py", "(k - 1) * min(shared, n_bands)", "k * shared // 2", _SPARSE),
    Mutation("mechanisms/_vector/sparse_stretch.py", "k * (1 + math.log(d / k))", "k * math.log(d / k)", _SPARSE),
    Mutation("mechanisms/_vector/projected_release.py", "sparse_bound(2 * int(", "sparse_bound(int(", _SPARSE),
    Mutation("accounting/_blanket_laws.py", "    if low + high > 1:\n", "    if low + high > 2:\n", _SHUFFLED),
    Mutation("accounting/_blanket_laws.py", "grown(2 * n_steps): least", "grown(n_steps): least", _SHUFFLED),
    Mutation("accounting/_blanket_laws.py", "- grown(low)) / (1 + one)", "- grown(low)) / (2 + one)", _SHUFFLED),
    Mutation(
        "accounting/_blanket_laws.py",
        "if len(mechanism.laws) > 1 and mechanism.n_sampled < mechanism.n_outputs:",
        "if False:",
        _SHUFFLED,
    ),
    Mutation("accounting/_blanket_laws.py", "(1 - 2 * cap) * outside", "(1 - cap) * outside", _SHUFFLED),
    Mutation("accounting/_blanket_laws.py", "slack=float(law.weights[0]) * _CAP_ERROR / 2", "slack=0.0", _SHUFFLED),
    Mutation(
        "accounting/_blanket_laws.py",
        "least = [min(column) for column in columns]",
        "least = [max(column) for column in columns]",
        _SHUFFLED,
    ),
    Mutation("study/_federated/settings.py", "delta, rounds=times)", "delta)", "study/test_federated.py"),
    Mutation("study/_federated/settings.py", "seeded=once.seeded)", "seeded=False)", "study/test_federated.py"),
    Mutation(
        "learning/_tasks.py",
        "if not (np.abs(numbers) <= _MOST).all():",
        "if (np.abs(numbers) > _MOST).any():",
        "learning/test_tasks.py",
    ),
    Mutation("learning/_tasks.py", '_check_size("matrix", rows)', "pass", "learning/test_tasks.py"),
    Mutation("learning/_tasks.py", "    _check_size(name, np.array(numbers))\n", "", "learning/test_tasks.py"),
    Mutation("learning/_documents.py", '"task": 2', '"task": 1', "learning/test_tasks.py"),
    Mutation("learning/_documents.py", "text, strict_mode=True", "text", "learning/test_tasks.py"),
    Mutation("learning/_tasks.py", "                u *= u\n", "                u *= 2\n", "learning/test_tasks.py"),
    # Few people: what a radius cuts off, what was expected, and steps that would diverge.
    Mutation(
        "learning/_few_people.py",
        "math.erf(_LOCATION_DEVIATIONS / math.sqrt(2))",
        "1.0",
        "learning/test_few_people.py",
    ),
    Mutation("learning/_few_people.py", "weighed(told, error, ", "weighed(told, 0.0, ", "learning/test_few_people.py"),
    Mutation(
        "learning/_few_people.py", "min(_LONGEST, 2 / len(", "min(_LONGEST, 20 / len(", "learning/test_few_people.py"
    ),
    Mutation("learning/_few_people.py", "1 + np.abs(offsets)", "1 + 0 * offsets", "learning/test_few_people.py"),
    Mutation("learning/_few_people.py", "+ kept * told", "+ told", "learning/test_few_people.py"),
    Mutation(
        "learning/_few_people.py", "(1 - steps) ** 2 * variances + ", "variances + ", "learning/test_few_people.py"
    ),
    Mutation("learning/_few_people.py", "self._deviation**2 / report.n_people", "0.0", "learning/test_few_people.py"),
    Mutation("learning/_few_people.py", "** 2 + of_people) / slope", "** 2) / slope", "learning/test_few_people.py"),
    Mutation("learning/_few_people.py", "_LOG_SPREAD / math.sqrt(", "0.0 * (", "learning/test_few_people.py"),
    Mutation(
        "learning/_protocol.py", "people and self.sufficiency >=", "self.sufficiency >=", "learning/test_few_people.py"
    ),
    Mutation("learning/_regression.py", "or not self._knows_sizes", "", "learning/test_few_people.py"),
    Mutation("learning/_classification.py", "self._knows_sizes and ", "", "learning/test_few_people.py"),
    # Rounds over Flower: once a person, in the file before anything is drawn, and nothing that a node says is believed.
    Mutation("collection/_flower.py", "ledger.charge(key, epsilon)", "pass", "collection/test_flower.py"),
    Mutation("collection/_flower.py", "reports()[key] > 1", "reports()[key] > 2", "collection/test_flower.py"),
    Mutation("collection/_flower.py", "if key not in one[2].reports()", "", "collection/test_flower.py"),
    Mutation("collection/_flower.py", "SystemRandom().shuffle(waiting)", "SystemRandom()", "collection/test_flower.py"),
    Mutation(
        "collection/_flower.py", "n_unanswered = 0 if answers else n", "n_unanswered = n", "collection/test_flower.py"
    ),
    Mutation(
        "collection/_flower.py",
        "if n_unanswered >= _PATIENCE:",
        "if n_unanswered > _PATIENCE:",
        "collection/test_flower.py",
    ),
    Mutation("collection/_flower.py", "task.check(report)", "pass", "collection/test_flower.py"),
    Mutation("collection/_flower.py", "report.n_people <= n_asked", "True", "collection/test_flower.py"),
    Mutation("collection/_flower.py", "min(left, protocol.n_people)", "left", "collection/test_flower.py"),
    Mutation("collection/_flower.py", '["settings"] != ', '["settings"] is ', "collection/test_flower.py"),
    Mutation("learning/_person.py", "self._spend(cost)", "pass", "collection/test_flower.py"),
    Mutation("learning/_regression.py", "weight *= 1 - part", "weight *= part", "learning/test_regression.py"),
    Mutation(
        "learning/_protocol.py",
        "noise_variance(n_products(n_functionals), self.epsilon)",
        "noise_variance(self.n_features + 1, self.epsilon)",
        "learning/test_regression.py",
    ),
    Mutation("learning/_regression.py", "1, LOOSEST**2)", "1, math.inf)", "learning/test_regression.py"),
    Mutation(
        "learning/_regression.py",
        "_LEAST_ONCE if self.kind",
        "LEAST_SUFFICIENCY if self.kind",
        "learning/test_regression.py",
    ),
    Mutation(
        "estimators/_validation.py",
        '("name unknown", set(bounds) - set(names))',
        '("name unknown", set())',
        "estimators/test_private_linear.py",
    ),
    Mutation(
        "estimators/_validation.py",
        "if isinstance(bounds, tuple) and len(bounds) == 2:",
        "if False:",
        "estimators/test_declared_scaler.py",
    ),
    Mutation(
        "estimators/_validation.py",
        "if not np.array_equal(readings[0], readings[-1]):",
        "if False:",
        "estimators/test_declared_scaler.py",
    ),
    # Targets: what bins and knots are released, what the prior costs, and which model is given what.
    Mutation(
        "mechanisms/_numeric/response_on_bins.py",
        "(noise.uniform(rows.shape) < share)",
        "(noise.uniform(rows.shape) > share)",
        "mechanisms/test_response_on_bins.py",
    ),
    Mutation(
        "mechanisms/_numeric/response_on_bins.py",
        "self.inner._draw(np.ascontiguousarray(codes, dtype=np.int64), noise, drawn, workspace)",
        "drawn[...] = codes",
        "mechanisms/test_response_on_bins.py",
    ),
    Mutation(
        "mechanisms/_numeric/best_bins.py",
        "least = min(least, (float(best[-1]) / (1 + (k - 1) * other), k))",
        "least = min(least, (float(best[-1]), k))",
        "mechanisms/test_response_on_bins.py",
    ),
    Mutation(
        "mechanisms/_numeric/best_bins.py",
        "for start in (-1.0, 0.0, 1.0):",
        "for start in (5.0,):",
        "mechanisms/test_response_on_bins.py",
    ),
    Mutation(
        "mechanisms/_numeric/private_prior.py",
        "self.inner._draw(self._parts(rows), noise, out, workspace)",
        "self.inner._encode(self._parts(rows), out, workspace)",
        "mechanisms/test_response_on_bins.py",
    ),
    Mutation(
        "estimators/_targets.py",
        "replace(question.guarantee() + guarantee, stated",
        "replace(guarantee, stated",
        "estimators/test_targets.py",
    ),
    Mutation(
        "estimators/_targets.py",
        "replace(guarantee, epsilon=epsilon, basis",
        "replace(guarantee, basis",
        "estimators/test_targets.py",
    ),
    Mutation(
        "estimators/_label_private.py",
        "if not isinstance(given, GuaranteeMixin | None):",
        "if False:",
        "estimators/test_targets.py",
    ),
    Mutation("estimators/_targets.py", ".spawn(1)[0]).rows", ").rows", "estimators/test_targets.py"),
    Mutation("estimators/_targets.py", "(1 - part, part)", "(1, part)", "estimators/test_targets.py"),
    Mutation("estimators/_targets.py", '"the bounds" if learnt else ""', '""', "estimators/test_targets.py"),
    Mutation(
        "estimators/_label_private.py", "estimator.fit(X, released", "estimator.fit(X, y", "estimators/test_targets.py"
    ),
    Mutation(
        "estimators/_label_private.py",
        "estimator.partial_fit(X, released",
        "estimator.partial_fit(X, y",
        "estimators/test_targets.py",
    ),
    Mutation(
        "estimators/_label_private.py",
        "if getattr(mechanism, self._domain_name, ()) is None:",
        "if False:",
        "estimators/test_targets.py",
    ),
    Mutation(
        "mechanisms/_vector/scaled_rows.py",
        "self.inner._draw(self._scaled(rows, workspace), noise, out, workspace)",
        "self.inner._draw(rows.astype(float), noise, out, workspace)",
        "estimators/test_embeddings.py",
    ),
    Mutation(
        "mechanisms/_vector/scaled_rows.py",
        "self.inner.domain.clip(scaled).rows",
        "scaled",
        "estimators/test_embeddings.py",
    ),
    # Tables: every column by its mechanism, shares that add up, and nothing taken for declared that was learnt.
    Mutation(
        "mechanisms/_record.py",
        "part._draw(given, noise, drawn, workspace)",
        "part._encode(given, drawn, workspace)",
        "estimators/test_table.py",
    ),
    Mutation("mechanisms/_record.py", "-round_up(-share)", "round_up(share)", "estimators/test_table.py"),
    Mutation(
        "mechanisms/_record.py", "given[:, 0] = rows[:, j]", "given[:, 0] = rows[:, 0]", "estimators/test_table.py"
    ),
    Mutation(
        "mechanisms/_record.py",
        "round_up(sum(map(Fraction, self.exact_epsilons), Fraction(0)))",
        "max(self.exact_epsilons)",
        "estimators/test_table.py",
    ),
    Mutation(
        "estimators/_schema.py", "if values.size and not texts_or_dates:", "if False:", "estimators/test_table.py"
    ),
    Mutation(
        "estimators/_schema.py",
        "if of_numbers or of_dates:",
        "if of_dates:",
        "estimators/test_table.py",
    ),
    Mutation("estimators/_schema.py", "if of_numbers or of_dates:", "if of_numbers:", "test_newcomers.py"),
    Mutation(
        "estimators/_composition.py",
        "times=given.times * step.stages",
        "times=given.times",
        "estimators/test_label_stages.py",
    ),
    Mutation(
        "estimators/_composition.py",
        'getattr(step, "transform_noise", True) or (is_model and given.predicted)',
        'getattr(step, "transform_noise", True)',
        "estimators/test_label_stages.py",
    ),
    Mutation("estimators/_schema.py", "learnt.append(str(name))", "pass", "estimators/test_table.py"),
    Mutation(
        "estimators/_schema.py",
        "if missing.any() and self.missing is None:",
        "if False:",
        "estimators/test_table.py",
    ),
    Mutation(
        "estimators/_schema.py",
        'got = f"Got the dtype of the column, {type(dtype).__name__}." if of_rows else error',
        "got = error",
        "estimators/test_table.py",
    ),
    Mutation(
        "estimators/_label_matrix.py",
        "share_out(float(self.epsilon), [1] * len(classes))",
        "(float(self.epsilon),) * len(classes)",
        "estimators/test_label_matrix.py",
    ),
    # Errors that leave out a part, and intervals where there is nothing to make them of.
    Mutation("learning/_uncertainty.py", "(of_people + by_gram)", "of_people", "learning/test_uncertainty.py"),
    Mutation(
        "learning/_uncertainty.py",
        "mean_first + part * mean_second",
        "mean_first + mean_second",
        "learning/test_uncertainty.py",
    ),
    Mutation("learning/_uncertainty.py", " + (1 - part) ** 2 * np.outer(way, way)", "", "learning/test_uncertainty.py"),
    Mutation(
        "learning/_uncertainty.py",
        "known = values >= np.maximum(",
        "known = values >= 0 * np.maximum(",
        "learning/test_uncertainty.py",
    ),
    Mutation("learning/_uncertainty.py", " + cut**2 * noise", "", "learning/test_uncertainty.py"),
    # Intervals that are told where the noise around them made them look good.
    Mutation(
        "learning/_moment_estimates.py",
        "_MOST_OF_VARIANCE * np.diag(self._remembered(self.expected))",
        "_MOST_OF_VARIANCE * np.diag(self.covariance)",
        "learning/test_moments.py",
    ),
    Mutation(
        "learning/_noise_of_products.py",
        "of_noise * (1 + self.cut**2)",
        "of_noise",
        "learning/test_noise_of_products.py",
    ),
    Mutation("learning/_tails.py", "        high += deviation\n", "        break\n", "learning/test_tails.py"),
    Mutation(
        "learning/_inference.py", '["terms_cut"] > _MOST_CUT', '["terms_cut"] > math.inf', "learning/test_inference.py"
    ),
    Mutation("learning/_inference.py", "* (end - start)", "", "learning/test_inference.py"),
    Mutation("learning/_inference.py", "cut_at * _APART < furthest", "cut_at < furthest", "learning/test_inference.py"),
    Mutation("learning/_inference.py", '"] = sys.float_info.max', '"] += 0', "learning/test_inference.py"),
    Mutation("learning/_inference.py", "        if self.refusal:", "        if False:", "learning/test_inference.py"),
    Mutation(
        "learning/_inference.py",
        "radius = min(radius, self._furthest(matrix, form))",
        "radius = radius",
        "learning/test_inference.py",
    ),
    Mutation(
        "accounting/_learned.py",
        "math.exp(loss) * (1 + 2.0**-50)",
        "math.exp(loss) * (1 - 2.0**-50)",
        "accounting/test_learned.py",
    ),
    Mutation(
        "accounting/_learned.py",
        "most = likelihood[self.probabilities > 0].max()",
        "most = likelihood.max()",
        "accounting/test_learned.py",
    ),
    Mutation(
        "accounting/_odometer.py",
        "loss_of(pairs[:n], bounds, domain, tol).upper for n",
        "loss_of(pairs[n - 1 : n], bounds, domain, tol).upper for n",
        "accounting/test_learned.py",
    ),
    Mutation(
        "accounting/_household.py",
        "len(self.shared) + member * n_own + np.arange(n_own)",
        "len(self.shared) + np.arange(n_own)",
        "accounting/test_household.py",
    ),
    Mutation(
        "accounting/_household.py",
        "for member in reversed(range(self.n_members)):",
        "for member in range(self.n_members):",
        "accounting/test_household.py",
    ),
    Mutation(
        "accounting/_ledger/dry_run.py",
        "                if unknown:",
        "                if False:",
        "accounting/test_dry_run.py",
    ),
    Mutation(
        "accounting/_ledger/dry_run.py",
        "np.where(accepted & ~recorded, worst, now)",
        "now",
        "accounting/test_dry_run.py",
    ),
    Mutation(
        "accounting/_ledger/dry_run.py",
        "recorded = np.zeros(len(people), dtype=bool) if repeat else handed >= 0",
        "recorded = handed >= 0",
        "accounting/test_dry_run.py",
    ),
    Mutation(
        "estimators/_query_results.py",
        "if n_people and not n_answers:",
        "if False:",
        "estimators/test_query_results.py",
    ),
    Mutation("study/_planning.py", "repeat=True", "repeat=False", "study/test_planning.py"),
    Mutation(
        "accounting/_extrema/curved_ramp.py",
        "np.maximum(best, value(w) + gain)",
        "np.maximum(best, value(w))",
        "accounting/test_certificate_parts.py",
        "At the stationary point the tangent gains what rounding takes, which is far below what any test can see.",
    ),
    Mutation(
        "accounting/_extrema/curved_ramp.py",
        "(q * height <= t) if sign > 0",
        "(q * height > t) if sign > 0",
        "accounting/test_certificate_parts.py",
    ),
    Mutation(
        "accounting/_extrema/curved_ramp.py",
        "for kink in (0.0, 1.0):",
        "for kink in (0.0,):",
        "accounting/test_certificate_parts.py",
    ),
    Mutation(
        "accounting/_extrema/curved_ramp.py",
        " + 64 * UNIT * k**2",
        "",
        "accounting/test_certificate_parts.py",
        "It is what rounding can mistake where a curve is as good as straight: far below what any test can see.",
    ),
    Mutation(
        "accounting/_extrema/sampled_law.py",
        "growth=sign * np.array(",
        "growth=np.array(",
        "accounting/test_certificate_parts.py",
    ),
    Mutation(
        "accounting/_regression_query.py",
        "growth = self.growth if output == 1 else -self.growth",
        "growth = self.growth",
        "accounting/test_sampled_answers.py",
    ),
    Mutation(
        "estimators/_from_estimator.py",
        "return coef / scale[0], float((intercept - shift[0]) / scale[0]), link",
        "return coef / scale[0], float(intercept / scale[0]), link",
        "estimators/test_from_estimator.py",
    ),
    Mutation(
        "estimators/_from_estimator.py",
        "if not marks_nan or step.add_indicator",
        "if step.add_indicator",
        "estimators/test_from_estimator.py",
    ),
    Mutation(
        "estimators/_from_estimator.py",
        "if target.func is np.log and target.inverse_func is np.exp:",
        "if target.func is not None:",
        "estimators/test_from_estimator.py",
    ),
    Mutation(
        "estimators/_bayesian_filter.py",
        "else 2 * positive - 1",
        "else positive",
        "estimators/test_bayesian_filter.py",
    ),
    Mutation(
        "accounting/_class_query.py",
        "for _ in range(int(np.ptp(count)))]",
        "for _ in range(int(np.ptp(count[count > 0])))]",
        "accounting/test_class_query.py",
    ),
    Mutation(
        "accounting/_class_query.py",
        "math.nextafter(math.fsum(terms), math.inf)",
        "math.nextafter(math.fsum(terms), 0.0)",
        "accounting/test_class_query.py",
    ),
    Mutation(
        "accounting/_class_query.py",
        "scores = saturated(X, self.n_features) @",
        "scores = np.asarray(X, dtype=np.float64) @",
        "accounting/test_class_query.py",
    ),
    Mutation(
        "accounting/_extrema/realized_loss.py",
        "upper = math.nextafter(rest.upper + own, math.inf) if own else rest.upper",
        "upper = max(rest.upper, own)",
        "accounting/test_class_query.py",
    ),
    Mutation(
        "accounting/_extrema/realized_loss.py",
        "lower = max(0.0, rest.lower - own)",
        "lower = rest.lower + own",
        "accounting/test_class_query.py",
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "ramp = curved(law, np.clip(w, 0.0 if kinked else -np.inf, 1.0))",
        "ramp = np.clip(w, 0.0 if kinked else -np.inf, 1.0)",
        "accounting/test_domains.py",
    ),
    Mutation(
        "accounting/_ledger/dry_run.py",
        "output >= 0 and not gone",
        "output >= 0",
        "accounting/test_dry_run.py",
    ),
    Mutation(
        "mechanisms/_code_laws.py",
        "or not 1 <= self.other_count * self.n_codes <= TWO_64",
        "or not 1 <= self.other_count * (self.n_codes - 1) < TWO_64",
        "mechanisms/test_integer_laws.py",
    ),
    Mutation(
        "mechanisms/_number_laws.py",
        "self.slope < _TWO_63 or int(float(self.slope)) != self.slope",
        "self.slope < _TWO_63",
        "mechanisms/test_integer_laws.py",
    ),
    Mutation(
        "mechanisms/_number_laws.py",
        "not 2**60 < self._total <= _TWO_63",
        "not 0 < self._total <= _TWO_63",
        "mechanisms/test_integer_laws.py",
    ),
    Mutation(
        "mechanisms/_number_laws.py",
        "or self.reach > (self.n_cells - self.n_inner) // 2",
        "or self.reach > self.n_cells",
        "mechanisms/test_integer_laws.py",
    ),
    Mutation(
        "mechanisms/_number_laws.py",
        "return max(of_sign, log_ratio(self.zero, zero_end)) if self.zero else of_sign",
        "return of_sign",
        "mechanisms/test_integer_laws.py",
    ),
    Mutation(
        "mechanisms/_number_laws.py",
        "return max(self.lattice.epsilon, self.few.epsilon)",
        "return self.few.epsilon",
        "mechanisms/test_integer_laws.py",
    ),
    Mutation(
        "client/_policy.py",
        '        if claims != [_claimed(one) for one in (*own._document["fields"], own._document)]:',
        "        if claims[:-1] != [repr(one.epsilon) for one in fields]:",
        "client/test_policy.py",
    ),
    Mutation(
        "client/_policy.py",
        '        if digest(given) != given["sha256"]:',
        "        if not digest(given):",
        "client/test_policy.py",
    ),
    Mutation(
        "client/_policy.py",
        "        if self._expiry is not None and datetime.now(UTC) >= self._expiry:",
        "        if self._expiry is not None and datetime.now(UTC) < self._expiry:",
        "client/test_policy.py",
    ),
    Mutation(
        "client/_ledger.py",
        "return math.ceil(Fraction(float(epsilon)) * _UNITS)",
        "return math.floor(Fraction(float(epsilon)) * _UNITS)",
        "client/test_policy.py",
    ),
    Mutation(
        "client/_ledger.py",
        "        if units and _total(connection) + units > limit:",
        "        if units > limit:",
        "client/test_policy.py",
    ),
    Mutation(
        "client/_fields.py",
        "Got another {type(value).__name__}.",
        "Got another {value}.",
        "client/test_policy.py",
    ),
    Mutation(
        "client/_schema.py",
        "    if len(content) < len(pairs):",
        "    if not pairs:",
        "client/test_policy.py",
    ),
    Mutation(
        "client/_reports.py",
        "    if number:\n",
        "    if number < 0:\n",
        "client/test_policy.py",
    ),
    Mutation(
        "collection/_policy.py",
        "    if not math.isfinite(part.fitted.privacy_guarantee_.epsilon):",
        "    if part.fitted.privacy_guarantee_.epsilon < 0:",
        "collection/test_policy.py",
    ),
    Mutation(
        "collection/_policy.py",
        "            if again != fields:",
        "            if len(again) != len(fields):",
        "collection/test_policy.py",
    ),
    Mutation(
        "client/_fields.py",
        "None if self.unknown is ... else self._codes[_key(self.unknown)]",
        "None if self.unknown is ... else 0",
        "client/test_policy.py",
    ),
    Mutation(
        "client/_schema.py",
        're.fullmatch(schema["pattern"].strip("^$"), value)',
        're.match(schema["pattern"].strip("^$"), value)',
        "client/test_policy.py",
    ),
    Mutation(
        "mechanisms/_code_laws.py",
        "next(words) < (self.own_count",
        "next(words) <= (self.own_count",
        "mechanisms/test_integer_laws.py",
    ),
    Mutation(
        "client/_policy.py",
        "            ledger.charge(self.sha256, self.epsilon)\n",
        "            secure_words().__next__()\n            ledger.charge(self.sha256, self.epsilon)\n",
        "client/test_policy.py",
    ),
    Mutation(
        "mechanisms/_release_key.py",
        'len(part).to_bytes(8, "big") + part for',
        "part for",
        "mechanisms/test_release_key.py",
    ),
    Mutation("mechanisms/_release_key.py", "key=self._secret, person", "person", "mechanisms/test_release_key.py"),
    Mutation("mechanisms/_release_key.py", ", person=person, digest", ", digest", "mechanisms/test_release_key.py"),
    Mutation(
        "mechanisms/_release_key.py", "_LEAST_DIFFERENT = 16", "_LEAST_DIFFERENT = 1", "mechanisms/test_release_key.py"
    ),
    Mutation(
        "mechanisms/_release_key.py",
        "len(secret) != _N_BYTES",
        "len(secret) < _N_BYTES",
        "mechanisms/test_release_key.py",
    ),
    Mutation(
        "mechanisms/_release_key.py", "state.st_mode & 0o077", "state.st_mode & 0o007", "mechanisms/test_release_key.py"
    ),
    Mutation("mechanisms/_release_key.py", "os.O_CREAT | os.O_EXCL", "os.O_CREAT", "mechanisms/test_release_key.py"),
    Mutation(
        "mechanisms/_release_key.py",
        "    if key.fingerprint != fingerprint:",
        "    if not fingerprint:",
        "mechanisms/test_release_key.py",
    ),
    Mutation("mechanisms/_release_key.py", 'return b"s" + one', "return one", "mechanisms/test_field_key.py"),
    Mutation(
        "mechanisms/_field_key.py",
        "texts = (law_text(mechanism), ",
        "texts = (",
        "mechanisms/test_field_key.py",
    ),
    Mutation(
        "mechanisms/_field_key.py",
        "self.field, wave)",
        "self.field)",
        "mechanisms/test_field_key.py mechanisms/test_longitudinal.py",
    ),
    Mutation(
        "mechanisms/_field_key.py",
        "(coarse.dtype)), self.field, wave)",
        "(coarse.dtype)), wave)",
        "mechanisms/test_field_key.py",
    ),
    Mutation(
        "mechanisms/_field_key.py",
        "str(mechanism.output_dtype(coarse.dtype)), self",
        '"", self',
        "mechanisms/test_field_key.py",
    ),
    Mutation(
        "mechanisms/_field_key.py",
        "one.update(person + value)",
        "one.update(value)",
        "mechanisms/test_field_key.py",
    ),
    Mutation(
        "mechanisms/_field_key.py",
        "one.update(person + value)",
        "one.update(person)",
        "mechanisms/test_field_key.py",
    ),
    Mutation(
        "mechanisms/_field_key.py",
        "for row in exact + exact.dtype.type(0)]",
        "for row in exact]",
        "mechanisms/test_field_key.py",
    ),
    Mutation(
        "mechanisms/_field_key.py",
        "return KeyedRows(coarse, ",
        "return KeyedRows(inside.rows, ",
        "mechanisms/test_field_key.py",
    ),
    Mutation(
        "mechanisms/_field_key.py", "np.floor(place + shifts)", "np.floor(place + 0.5)", "mechanisms/test_field_key.py"
    ),
    Mutation(
        "mechanisms/_field_key.py",
        "            return [type(value).__name__, integer_law",
        "            return [integer_law",
        "mechanisms/test_field_key.py",
    ),
    Mutation(
        "mechanisms/_field_key.py", 'and mechanism.guarantee().unit != "distance"', "", "mechanisms/test_field_key.py"
    ),
    Mutation(
        "mechanisms/_field_key.py",
        "    return domain.clip(coarse.astype(rows.dtype)).rows",
        "    return coarse.astype(rows.dtype)",
        "mechanisms/test_field_key.py",
    ),
    Mutation(
        "mechanisms/_field_key.py",
        '_NO_LAW = {"stated", "figures"}',
        '_NO_LAW = {"figures"}',
        "mechanisms/test_field_key.py",
    ),
    Mutation(
        "estimators/_out_of_core.py",
        "secure and (release_key is None or release_key.key.travels)",
        "secure",
        "estimators/test_repeated_releases.py",
    ),
    Mutation(
        "estimators/_out_of_core.py",
        "canonical_ids(people[start : start + _MOST_IDS])",
        "canonical_ids(people[start : start + 1])",
        "estimators/test_repeated_releases.py",
    ),
    Mutation(
        "estimators/_out_of_core.py",
        "    if estimator.seed is not None or not getattr(",
        "    if estimator.seed is not None and not getattr(",
        "estimators/test_repeated_releases.py",
    ),
    Mutation(
        "estimators/_base.py",
        "rows, noise, n_before = keyed.key.bind(mechanism, rows, keyed.ids)",
        "_, noise, n_before = keyed.key.bind(mechanism, rows, keyed.ids)",
        "estimators/test_repeated_releases.py",
    ),
    Mutation(
        "estimators/_base.py",
        "keyed.key.bind(mechanism, rows, keyed.ids)",
        "keyed.key.bind(mechanism, rows, range(n_rows))",
        "estimators/test_repeated_releases.py",
    ),
    Mutation(
        "mechanisms/_longitudinal.py",
        "        np.not_equal(out, rows, out=out)\n",
        "",
        "mechanisms/test_longitudinal.py",
    ),
    Mutation(
        "mechanisms/_longitudinal.py",
        "self.flip_count**self.n_bits",
        "self.flip_count",
        "mechanisms/test_longitudinal.py",
    ),
    Mutation(
        "mechanisms/_longitudinal_laws.py",
        "p * other + q * own + (g - 2) * q * other",
        "p * other + q * own",
        "mechanisms/test_longitudinal.py",
    ),
    Mutation(
        "mechanisms/_longitudinal_laws.py",
        "p * own + (g - 1) * q * other,",
        "p * own,",
        "mechanisms/test_longitudinal.py",
    ),
    Mutation(
        "mechanisms/_longitudinal_laws.py",
        "log_ratio(own**self.n_differing, other**self.n_differing)",
        "log_ratio(own, other)",
        "mechanisms/test_longitudinal.py",
    ),
    Mutation(
        "mechanisms/_longitudinal.py",
        "key.release(self.first, codes, ids)",
        "key.release(self.first, codes, ids, wave=wave)",
        "mechanisms/test_longitudinal.py",
    ),
    Mutation(
        "mechanisms/_longitudinal.py",
        "kept.astype(np.int64), ids, wave=wave)",
        "kept.astype(np.int64), ids)",
        "mechanisms/test_longitudinal.py",
    ),
    Mutation(
        "mechanisms/_longitudinal.py",
        "Fraction(self.second.guarantee().epsilon) * n_reports",
        "Fraction(self.second.guarantee().epsilon)",
        "mechanisms/test_longitudinal.py",
    ),
    Mutation(
        "mechanisms/_longitudinal.py", "each * self._distinct(n_values)", "each", "mechanisms/test_longitudinal.py"
    ),
    Mutation(
        "mechanisms/_longitudinal.py",
        'return n_values if self.method == "sue" else min',
        "return min",
        "mechanisms/test_longitudinal.py",
    ),
    Mutation(
        "mechanisms/_longitudinal.py",
        "other if self._hashes is None else support",
        "other if self._hashes else support",
        "mechanisms/test_longitudinal.py",
    ),
    Mutation(
        "mechanisms/_longitudinal_mean.py",
        'key.personal("threshold", ids).uniform(share.shape)',
        "0.5",
        "mechanisms/test_longitudinal.py",
    ),
    Mutation(
        "client/_memo.py",
        "(_VERSION, meaning, law, person, packed)",
        "(_VERSION, law, person, packed)",
        "client/test_memo.py",
    ),
    Mutation(
        "client/_memo.py",
        "(_VERSION, meaning, law, person, packed)",
        "(_VERSION, meaning, person, packed)",
        "client/test_memo.py",
    ),
    Mutation(
        "client/_memo.py",
        "(_VERSION, meaning, law, person, packed)",
        "(_VERSION, meaning, law, packed)",
        "client/test_memo.py",
    ),
    Mutation(
        "client/_memo.py",
        "(_VERSION, meaning, law, person, packed)",
        "(_VERSION, meaning, law, person)",
        "client/test_memo.py",
    ),
    Mutation(
        "client/_memo.py", "_VERSION, policy, person, *about)", "_VERSION, person, *about)", "client/test_memo.py"
    ),
    Mutation(
        "client/_memo.py", "_VERSION, policy, person, *about)", "_VERSION, policy, person)", "client/test_memo.py"
    ),
    Mutation("client/_memo.py", "* steps + above)", "* steps + 0.5)", "client/test_memo.py"),
    Mutation("client/_memo.py", "        block += 1\n", "", "client/test_memo.py"),
    Mutation(
        "client/_policy.py",
        "            ledger.charge_once(self.sha256, kept.charges)\n",
        "            pass\n",
        "client/test_memo.py",
    ),
    Mutation(
        "client/_ledger.py",
        "if units and _total(connection)",
        "if _total(connection)",
        "client/test_memo.py",
    ),
    Mutation(
        "client/_ledger.py",
        "sum(_units(charges[tag]) for tag in new)",
        "sum(_units(charges[tag]) for tag in new[:1])",
        "client/test_memo.py",
    ),
    Mutation("client/_ledger.py", ".fetchone() is None]", ".fetchone() is not None]", "client/test_memo.py"),
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
        "estimators/_label_stages.py",
        "noise.permutation(n), stages)",
        "np.arange(n), stages)",
        "estimators/test_label_stages.py",
    ),
    Mutation(
        "estimators/_label_stages.py",
        "released[cohort] = response.release(codes[cohort], priors, noise)",
        "released[:] = response.release(codes, np.ones((len(y), classes.size)), noise)",
        "estimators/test_label_stages.py",
    ),
    Mutation(
        "estimators/_label_stages.py",
        "decode(released[asked], classes, y.dtype)",
        "decode(codes[asked], classes, y.dtype)",
        "estimators/test_label_stages.py",
    ),
    Mutation(
        "estimators/_label_stages.py",
        "seeded=of_labels.seeded",
        "seeded=False",
        "estimators/test_label_stages.py",
    ),
    Mutation(
        "estimators/_label_stages.py",
        "    if math.isinf(of_labels.epsilon):\n        return of_labels\n",
        "",
        "estimators/test_label_stages.py",
    ),
    Mutation(
        "estimators/_label_private_classifier.py",
        'super()._guarantee_parameters() | {"stages": self.stages}',
        "super()._guarantee_parameters()",
        "estimators/test_label_stages.py",
    ),
    Mutation(
        "study/_audit/inversion_bound.py",
        "(1 + others * delta) / (1 + others)",
        "1 / (1 + others)",
        "study/test_inversion.py",
    ),
    Mutation(
        "study/_audit/inversion_bound.py",
        "y.sum() / reached.min()",
        "y.sum() / reached.max()",
        "study/test_inversion.py",
    ),
    Mutation(
        "study/_audit/inversion_bound.py",
        "(1 + others) * (1 + _ROUNDING))",
        "(1 + others) * (1 - 1e-7))",
        "study/test_inversion.py",
    ),
    Mutation(
        "study/_audit/table_cells.py",
        "released[:, int(value)] * mechanism.exact_epsilon",
        "released[:, int(value)] * -mechanism.exact_epsilon",
        "study/test_inversion_tables.py",
    ),
    Mutation(
        "study/_audit/table_cells.py",
        "math.log1p(-told) + number",
        "number",
        "study/test_inversion_tables.py",
    ),
    Mutation(
        "study/_audit/table_cells.py",
        "total += epsilon * (place[:, None] != place)",
        "total = epsilon * (place[:, None] != place)",
        "study/test_inversion_tables.py",
    ),
    Mutation(
        "study/_audit/table_cells.py",
        "release.mechanism_.domain.clip(cells).rows",
        "cells",
        "study/test_inversion_tables.py",
    ),
    Mutation(
        "study/_audit/table_cells.py",
        "base + extra * inside",
        "base + extra * (inside > 0)",
        "study/test_inversion_tables.py",
    ),
    Mutation(
        "study/_audit/table_cells.py",
        "few * (1 - share)",
        "few * share",
        "study/test_inversion_tables.py",
    ),
    Mutation(
        "study/_audit/table_cells.py",
        "total > best",
        "total < best",
        "study/test_inversion_tables.py",
    ),
    Mutation(
        "study/_audit/table_cells.py",
        "and not of_days",
        "",
        "study/test_inversion_tables.py",
    ),
    Mutation(
        "study/_audit/inversion.py",
        "math.isfinite(guarantee.epsilon) and len(cells)",
        "len(cells)",
        "study/test_inversion_tables.py",
    ),
    Mutation(
        "study/_audit/inversion.py",
        "distinct_rows(candidates) < len(candidates)",
        "False",
        "study/test_inversion_tables.py",
    ),
    Mutation(
        "study/_audit/inversion.py",
        "noise_from(seed).spawn(1)[0].spawn(1)",
        "[noise_from(seed)]",
        "study/test_inversion.py",
    ),
    Mutation(
        "study/_audit/inversion.py",
        "_decoded(decoder, shown, lessons, outputs)",
        "_decoded(decoder, outputs[np.argsort(chosen)][: len(lessons)], np.sort(chosen)[: len(lessons)], outputs)",
        "study/test_inversion.py",
    ),
    Mutation(
        "study/_audit/inversion.py",
        "better = likelihood > best",
        "better = likelihood < -best",
        "study/test_inversion.py",
    ),
    Mutation(
        "study/_audit/inversion.py",
        "risk = (1 - confidence) / len(guesses)",
        "risk = 1 - confidence ** len(guesses)",
        "study/test_inversion.py",
    ),
    Mutation("study/_choice.py", "worst = np.max(", "worst = np.min(", "study/test_grid_search.py"),
    Mutation("study/_choice.py", "if folds and self.names is None:", "if False:", "study/test_grid_search.py"),
    Mutation("study/_choice.py", "else _WITHOUT_BOUND}", "else 0.0}", "study/test_grid_search.py"),
    Mutation("study/_features.py", "found.append(name)", "pass", "study/test_features.py"),
    Mutation("study/_features.py", "if missing.any() and not fill and", "if False and", "study/test_features.py"),
    Mutation(
        "study/_tables.py",
        "if any(map(is_number, cells)) and",
        "if any(map(is_number, listed)) and",
        "study/test_tables.py",
    ),
    Mutation("study/_tables.py", "given.count(name) > 1", "given.count(name) > 2", "study/test_tables.py"),
    Mutation("study/_tables.py", "if nameless.any():", "if False:", "study/test_tables.py"),
    Mutation("study/_recommend.py", "asked.epsilon / asked.n_questions", "asked.epsilon", "study/test_recommend.py"),
    Mutation(
        "study/_declared_table.py", 'handle_unknown="ignore"', 'handle_unknown="error"', "study/test_recommend.py"
    ),
    Mutation(
        "estimators/_table.py",
        'if self.sparse_output and self.encoding == "onehot" and container != "default":',
        "if False:",
        "estimators/test_out_of_domain.py",
    ),
    Mutation("exceptions.py", "said.add(message)", "pass", "estimators/test_out_of_domain.py"),
    # Tables with numbers that may be missing, and sets of categories.
    *(
        Mutation("mechanisms/_number_or_missing.py", old, new, _OR_MISSING)
        for old, new in (
            ("np.where(missing, told, hidden)", "np.where(missing, told, told)"),
            ("np.where(missing, self.values.middle, rows)", "np.where(missing, self.values.number.low, rows)"),
            ("self.number._draw(there, noise, out, workspace)", "self.number._encode(there, out, workspace)"),
            ("+ Fraction(unit.loss_from_middle)", "+ 0"),
            ("round_up(of_numbers), unit.exact_epsilon)", "unit.exact_epsilon)"),
            ("left = spent - unit.loss_from_middle", "left = spent - unit.loss_from_middle / 2"),
            ("/ (1 - q)\n", "\n"),
        )
    ),
    Mutation(
        "mechanisms/_numeric/duchi.py",
        "return log_ratio(2**63 + self.slope, 2**63, in_doubles=True)",
        "return 0.0",
        _OR_MISSING,
    ),
    Mutation(
        "mechanisms/_numeric/three_outputs.py",
        "(wrong - wrong_lost), wrong, in_doubles=True)",
        "(wrong - wrong_lost), zero + wrong, in_doubles=True)",
        _OR_MISSING,
    ),
    Mutation(
        "mechanisms/_columns.py",
        "np.where(missing, rows.dtype.type(np.nan), within)",
        "np.where(missing, rows, within)",
        _OR_MISSING,
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
    *(
        Mutation(path, old, new, "estimators/test_table_mechanisms.py")
        for path, old, new in (
            (
                "estimators/_table_encoding.py",
                "(encoded[:, end - size : end] - q) / (p - q)",
                "encoded[:, end - size : end]",
            ),
            ("estimators/_table.py", "and noisy else as_one_hot", "else as_one_hot"),
            ("estimators/_table.py", "if part.n_outputs > 1]", "if part.n_outputs > 99]"),
            ("estimators/_table.py", "if set(by_column) - of_categories:", "if False:"),
            ("estimators/_base.py", "& (block == block)", "& True"),
            ("collection/_kinds.py", 'if column.missing == "category":', "if False:"),
            ("collection/_kinds.py", '"oue" if law.own_count == 2**63 else "sue"', '"oue"'),
        )
    ),
    Mutation("exceptions.py", "if candidate[0] or split[0] or", "if", "estimators/test_out_of_domain.py"),
    Mutation("study/_choice.py", "one is not None for name", "False for name", "study/test_grid_search.py"),
    Mutation(
        "study/_choice.py",
        "if self.names is None and (beside or",
        "if False and (beside or",
        "study/test_grid_search.py",
    ),
    Mutation(
        "study/_comparison.py", "asked + (asked if fixed is None else fixed):g", "asked:g", "study/test_comparison.py"
    ),
    Mutation(
        "collection/_columns.py", "order[starts[several]] = min(rows,", "order[starts[several]] = max(rows,", _COLLECTOR
    ),
    Mutation(
        "collection/_columns.py",
        "(high[1:] != high[:-1]) | (low[1:] != low[:-1])",
        "(high[1:] != high[:-1]) & (low[1:] != low[:-1])",
        _COLLECTOR,
    ),
    Mutation(
        "collection/_columns.py",
        "fits &= answers <= answers.dtype.type(field.n_answers - 1)",
        "fits &= True",
        "collection/test_arrow.py",
    ),
    Mutation(
        "collection/_arrow.py",
        'for name in (b"skldp_reports", b"skldp_policy_sha256")',
        'for name in (b"skldp_reports",)',
        "collection/test_arrow.py",
    ),
    Mutation(
        "collection/_arrow.py",
        "whole = ~nulls & are_answers(policy, given)",
        "whole = are_answers(policy, given)",
        "collection/test_arrow.py",
    ),
    Mutation("collection/_arrow.py", 'return [report or b"" for', "return [report for", "collection/test_batches.py"),
    Mutation(
        "cli/_releases.py",
        "    if any(is_missing(cell) for cell in cells):",
        "    if False:",
        "cli/test_policies.py",
    ),
    Mutation("cli/_releases.py", "    check_secret(policy, key, ids)\n", "    pass\n", "cli/test_policies.py"),
    Mutation(
        "collection/_batches.py", "            person_bytes(one)\n", "            pass\n", "collection/test_batches.py"
    ),
    Mutation(
        "collection/_batches.py",
        "if kept is not isinstance(secret, ReleaseKey) or",
        "if",
        "collection/test_batches.py",
    ),
    Mutation("collection/_batches.py", "secret=secret, person=one)", "secret=secret)", "collection/test_batches.py"),
    Mutation(
        "estimators/_table.py",
        'return np.can_cast(self._encoded(self._empty_release(0, np.float64), None).dtype, dtype, "same_kind")',
        "return True",
        "estimators/test_out_of_core.py",
    ),
    Mutation(
        "estimators/_out_of_core.py",
        "        _warn_of_a_cluster()\n",
        "        pass\n",
        "estimators/test_repeated_releases.py",
    ),
    Mutation(
        "estimators/_out_of_core.py",
        "    if sparse.issparse(empty):",
        "    if False:",
        "estimators/test_out_of_core.py",
    ),
    Mutation(
        "collection/_report_files.py",
        "own = given.startswith(header(bytes.fromhex(policy.sha256)))",
        "own = True",
        _COLLECTOR,
    ),
    Mutation("collection/_report_files.py", "following = held.find(start, place + 1)", "following = -1", _COLLECTOR),
    Mutation(
        "collection/_report_store.py",
        "return ReportCounts(n, self._foreign, self._broken, self._read - n)",
        "return ReportCounts(self._read, self._foreign, self._broken, 0)",
        _COLLECTOR,
    ),
    Mutation(
        "collection/_report_store.py",
        "if any(one.policy.sha256 != self.policy.sha256 for one in every):",
        "if False:",
        _COLLECTOR,
    ),
    Mutation("collection/_collector.py", "if len(set(names)) < len(names):", "if False:", _COLLECTOR),
    Mutation(
        "learning/_survey_estimates.py",
        "level = middle + (middle - raw.values) - side",
        "level = raw.values + side",
        "learning/test_survey_estimates.py",
    ),
    Mutation(
        "learning/_survey_estimates.py",
        "if is_exact else z * found.shares[bins] / math.sqrt(12)",
        "",
        "learning/test_survey_estimates.py",
    ),
    Mutation(
        "learning/_survey_estimates.py",
        "kept = np.clip(values, low, high)",
        "kept = values",
        "learning/test_survey_estimates.py",
    ),
    # Heavy hitters.
    Mutation("client/_prefixes.py", "if 0 <= value < 1 << self.length else None", "", _HITTERS),
    Mutation("client/_prefixes.py", "len(text) == length if self.fixed", "True if self.fixed", _HITTERS),
    Mutation("client/_prefixes.py", "if not all(isinstance(one, str) and ", "if not all(one is None or ", _HITTERS),
    Mutation("client/_prefixes.py", "if any(not one < two for", "if any(False for", _HITTERS),
    Mutation("client/_prefixes.py", " or field.unknown is not None:", ":", _HITTERS),
    Mutation("client/_prefixes.py", 'if self.policy.memo != "fresh":', "if False:", _HITTERS),
    Mutation("client/_prefixes.py", "ledger=ledger)", "ledger=None)", _HITTERS),
    Mutation(
        "collection/_heavy_hitters.py", "self.false_positives / (scores.n_parts - 1)", "self.false_positives", _HITTERS
    ),
    Mutation("collection/_heavy_hitters.py", "scores.q)) + 1", "scores.q)) + 2", _HITTERS),
    Mutation("collection/_heavy_hitters.py", "1 - (1 - level) / (len(field.values) - 1)", "level", _HITTERS),
    Mutation("collection/_heavy_hitters.py", "or kept != [one for one in candidates if one in chosen]", "", _HITTERS),
    Mutation("collection/_heavy_hitters.py", "if own.to_json() != canonical_text(given):", "if False:", _HITTERS),
    Mutation(
        "learning/_answer_scores.py",
        "return _of_bits(n, p, (law.set_size - p) / (n - 1))",
        "return _of_bits(n, p, law.set_size / n)",
        _SCORES,
    ),
    Mutation(
        "learning/_answer_scores.py",
        "self._gain = 1 - law.miss_count / TWO_64 * (1 + law.block_size / 2 / others)",
        "self._gain = 1 - law.miss_count / TWO_64",
        _SCORES,
    ),
    Mutation(
        "learning/_answer_scores.py",
        "(held * (1 - 2 * self.q) + self.q**2 * total) / gain**2",
        "held * (1 - self.q) ** 2 / gain**2",
        _SCORES,
    ),
    Mutation(
        "learning/_answer_scores.py",
        "(law.value(answer) ** 2 - constant) / (1 + square) / share",
        "(law.value(answer) ** 2 - constant) / (1 + square)",
        _SCORES,
    ),
    Mutation(
        "learning/_answer_scores.py",
        "return [0, half - 1, half, law.n_answers - 1]",
        "return [0, law.n_answers - 1]",
        _SCORES,
    ),
    Mutation(
        "learning/_survey_estimates.py", "left = 1 - share * self.held", "left = np.ones_like(self.held)", _COLLECTOR
    ),
    Mutation(
        "learning/_survey_estimates.py",
        "np.where(bounded, low, -np.inf), np.where(bounded, high, np.inf)",
        "low, high",
        _COLLECTOR,
    ),
    Mutation(
        "learning/_survey_estimates.py", "v_aa - 2 * R * v_ab + R**2 * v_bb, 0.0)) / B", "v_aa, 0.0)) / B", _COLLECTOR
    ),
    Mutation(
        "learning/_survey_estimates.py", "np.maximum(v_aa, least_aa)", "v_aa", "learning/test_survey_estimates.py"
    ),
    Mutation(
        "learning/_survey_estimates.py",
        "anything = (-unknown, unknown)",
        "anything = (low, high)",
        "learning/test_survey_estimates.py",
    ),
    Mutation(
        "learning/_survey_estimates.py",
        "z * np.maximum(errors, z * width / n)",
        "z * errors",
        "learning/test_survey_estimates.py",
    ),
    Mutation(
        "learning/_survey_estimates.py", "np.maximum(v_aa, least**2)", "v_aa", "learning/test_survey_estimates.py"
    ),
    Mutation(
        "learning/_survey_estimates.py",
        "known = np.isfinite(second.low) & np.isfinite(second.high)",
        "known = np.isfinite(values)",
        "learning/test_survey_estimates.py",
    ),
    Mutation(
        "learning/_survey_estimates.py",
        "first.moved**2 / n if weights.low == weights.high else",
        "first.moved**2 / n if n else",
        "learning/test_survey_estimates.py",
    ),
    Mutation("learning/_survey_estimates.py", "low=np.minimum(low, shares),", "low=low,", _COLLECTOR),
    Mutation(
        "mechanisms/_numeric/distribution.py",
        "inside**2 / 2 + width * np.maximum(u - width, 0.0)",
        "inside**2 / 2",
        "mechanisms/test_square_wave.py",
    ),
    Mutation(
        "mechanisms/_numeric/distribution.py",
        "if not smooth and n * (factors.max() - 1) < n_inputs / 16:",
        "if not smooth:",
        "mechanisms/test_square_wave.py",
    ),
    Mutation(
        "mechanisms/_numeric/piecewise.py",
        "return (math.expm1(epsilon) - epsilon) / (epsilon + math.expm1(-epsilon))",
        "return (math.expm1(epsilon) - epsilon) / epsilon",
        "mechanisms/test_square_wave.py",
    ),
    Mutation(
        "mechanisms/_category_laws.py",
        "return (TWO_64 - self.miss_count) * (self.n_codes - self.set_size)",
        "return (TWO_64 - self.miss_count) * self.set_size",
        "mechanisms/test_category_laws.py",
    ),
    Mutation(
        "mechanisms/_category_laws.py",
        "held = next(words) >= self.miss_count",
        "held = next(words) > self.miss_count",
        "mechanisms/test_category_laws.py",
    ),
    Mutation(
        "mechanisms/_category_laws.py",
        'or not 1 <= self.miss_count < TWO_64 or self._held < self._missed:\n            self._refuse(f"have sets',
        'or not 1 <= self.miss_count < TWO_64:\n            self._refuse(f"have sets',
        "mechanisms/test_category_laws.py",
    ),
    Mutation(
        "mechanisms/_category_laws.py",
        "if not codes or not is_prime(self.n_buckets):",
        "if not codes:",
        "mechanisms/test_category_laws.py",
    ),
    Mutation(
        "mechanisms/_category_laws.py",
        "and answer.bit_count() == self.set_size",
        "and answer.bit_count() >= self.set_size",
        "mechanisms/test_category_laws.py",
    ),
    Mutation(
        "mechanisms/_category_laws.py",
        "other = uniform_below(self.n_answers - own, words)",
        "other = uniform_below(self.n_answers - self.block_size, words)",
        "mechanisms/test_category_laws.py",
    ),
    Mutation(
        "mechanisms/_integer_laws.py",
        "most = TWO_64 - TWO_64 % n",
        "most = TWO_64",
        "mechanisms/test_category_laws.py",
    ),
    Mutation(
        "mechanisms/_subsets.py",
        "chosen.add(last if number in chosen else number)",
        "chosen.add(number)",
        "mechanisms/test_category_laws.py",
    ),
    Mutation(
        "mechanisms/_group_laws.py",
        "if self._of_agreeing <= self._of_others:",
        "if not self._of_agreeing:",
        "mechanisms/test_group_laws.py",
    ),
    Mutation(
        "mechanisms/_group_laws.py",
        "math.comb(d, d // 2) // 2",
        "math.comb(d, d // 2)",
        "mechanisms/test_group_laws.py",
    ),
    Mutation(
        "mechanisms/_group_laws.py",
        "return 1 if isinstance(self.of_sampled, SignsLaw) else self.n_sampled",
        "return 1",
        "mechanisms/test_group_laws.py",
    ),
    Mutation(
        "mechanisms/_bin_laws.py",
        "upward = next(words) * (high - low) < (place - low) * TWO_64",
        "upward = next(words) * (high - low) < (high - place) * TWO_64",
        "mechanisms/test_bin_laws.py",
    ),
    Mutation(
        "mechanisms/_bin_laws.py",
        "sum((Fraction(log_ratio(TWO_64 - t, t)) for t in self.flip_counts), Fraction(0))",
        "max((Fraction(log_ratio(TWO_64 - t, t)) for t in self.flip_counts))",
        "mechanisms/test_bin_laws.py",
    ),
    Mutation(
        "mechanisms/_bin_laws.py",
        "        if self._gain < 1:\n",
        "        if self._gain < 0:\n",
        "mechanisms/test_bin_laws.py",
    ),
    Mutation("client/_ledger.py", "self.path = abspath(path)", "self.path = str(path)", "client/test_crashes.py"),
    Mutation(
        "client/_ledger.py",
        "        except sqlite3.Error as error:",
        "        except sqlite3.IntegrityError as error:",
        "client/test_crashes.py",
    ),
    Mutation(
        "client/_columns.py",
        "([0-9]{2})(?:[T ]|\\Z)",
        "([0-9]{2})",
        "collection/test_policy.py",
    ),
    Mutation(
        "client/_policy.py",
        "        if not all(field.is_answer(answer) for field, answer in zip(self.fields, answers, strict=True)):",
        "        if not answers:",
        "client/test_policy.py",
    ),
    Mutation(
        "client/_policy.py",
        "        encoded = [self._encode(record) for record in records]\n        words",
        "        encoded = (self._encode(record) for record in records)\n        words",
        "collection/test_batches.py",
    ),
    Mutation(
        "collection/_columns.py",
        ".sum(axis=1) == field.law.set_size",
        ".sum(axis=1) > 0",
        "collection/test_batches.py",
    ),
    Mutation(
        "collection/_kinds.py",
        'if fitted.calibration != "exact" or not fitted.debias:',
        'if fitted.calibration != "exact":',
        "collection/test_policy.py",
    ),
    Mutation(
        "cli/_releases.py",
        "        part.unlink(missing_ok=True)",
        "        part.exists()",
        "cli/test_policies.py",
    ),
    Mutation(
        "cli/_releases.py",
        "        os.replace(part, output)\n    finally:",
        "    finally:\n        os.replace(part, output)",
        "cli/test_policies.py",
    ),
    Mutation(
        "mechanisms/_longitudinal_laws.py",
        "return min(self.n_chosen, 2)",
        "return 1",
        "mechanisms/test_longitudinal_laws.py",
    ),
    Mutation(
        "mechanisms/_longitudinal_laws.py",
        '        """The bits of two codes."""\n        return 2',
        '        """The bits of two codes."""\n        return 1',
        "mechanisms/test_longitudinal_laws.py",
    ),
    Mutation(
        "mechanisms/_longitudinal_laws.py",
        "count >= 1 and count * self.n_each < TWO_64",
        "count >= 1 and count * self.n_each <= TWO_64",
        "mechanisms/test_longitudinal_laws.py",
    ),
    Mutation(
        "mechanisms/_longitudinal_laws.py",
        "return self._loss(*self._counts(self.first_count))",
        "return self._loss(*self._counts(self.second_count))",
        "mechanisms/test_longitudinal_laws.py",
    ),
    Mutation(
        "mechanisms/_longitudinal_laws.py",
        "flips = 2 * flips + (next(words) < count)",
        "flips = 2 * flips + (next(words) <= count)",
        "mechanisms/test_longitudinal_laws.py",
    ),
    Mutation(
        "mechanisms/_longitudinal_laws.py",
        "ResponseLaw(self.n_each, self.second_count).draw(kept, words)",
        "kept",
        "mechanisms/test_longitudinal_laws.py",
    ),
    Mutation("mechanisms/_longitudinal_laws.py", "> choice)", ">= choice)", "mechanisms/test_longitudinal_laws.py"),
    Mutation(
        "mechanisms/_longitudinal_laws.py",
        "self._flipped(kept, self.n_chosen, self.second_count, words)",
        "kept",
        "mechanisms/test_longitudinal_laws.py",
    ),
    Mutation(
        "mechanisms/_longitudinal_laws.py",
        "if bucket == own",
        "if bucket >= own",
        "mechanisms/test_longitudinal_laws.py",
    ),
    Mutation(
        "mechanisms/_subsets.py",
        "binomial * left // place, left - 1",
        "binomial * (left - 1) // place, left - 1",
        "mechanisms/test_group_laws.py",
    ),
    Mutation(
        "mechanisms/_group_laws.py", " and not isinstance(one, TwoStepLaw)", "", "mechanisms/test_longitudinal_laws.py"
    ),
    Mutation(
        "mechanisms/_longitudinal_histogram.py",
        "return min(int(self.n_chosen), 2)",
        "return 1",
        "mechanisms/test_longitudinal_laws.py",
    ),
    Mutation(
        "mechanisms/_longitudinal_histogram.py",
        "self.n_chosen + (self.n_chosen < self.n_buckets)",
        "self.n_chosen",
        "mechanisms/test_longitudinal_laws.py",
    ),
    Mutation(
        "client/_memo.py",
        '(*of_person, _whole(permanent), wave.encode("utf-8", "surrogatepass"))',
        "(*of_person, _whole(permanent))",
        "client/test_waves.py",
    ),
    Mutation(
        "client/_memo.py",
        '(*of_person, _whole(permanent), wave.encode("utf-8", "surrogatepass"))',
        '(*of_person, wave.encode("utf-8", "surrogatepass"))',
        "client/test_waves.py",
    ),
    Mutation(
        "client/_memo.py",
        "about = self._about(_whole(seen))",
        "about = self._about(_whole(seen) + wave.encode())",
        "client/test_waves.py",
    ),
    Mutation(
        "client/_memo.py",
        '"skldp choice", *of_person)',
        '"skldp choice", *of_person, wave.encode())',
        "client/test_waves.py",
    ),
    Mutation(
        "client/_memo.py",
        '(*values, wave.encode("utf-8", "surrogatepass")) if wave else values',
        "values",
        "client/test_waves.py",
    ),
    Mutation(
        "client/_memo.py",
        "else:\n            answer, tag = own.report(given, wave)",
        "else:\n            answer, tag = own.report(given, wave)\n            values.append(_whole(int(given * 1e6)))",
        "client/test_waves.py",
    ),
    Mutation("client/_memo.py", "*about, column.name.encode())", "*about)", "client/test_waves.py"),
    Mutation("client/_memo.py", "field.lifetime_epsilon)", "field.epsilon)", "client/test_waves.py"),
    Mutation(
        "client/_policy.py",
        'if self.memo == "fresh" and self.has_waves:',
        'if self.memo == "fresh" and not self.fields:',
        "client/test_waves.py",
    ),
    Mutation("client/_policy.py", "(wave is None) is self.has_waves or", "self.has_waves and", "client/test_waves.py"),
    Mutation(
        "client/_policy.py",
        'return given["epsilon"], given.get("lifetime_epsilon")',
        'return given["epsilon"], None',
        "client/test_waves.py",
    ),
    Mutation(
        "client/_policy.py",
        "sum(one.n_answers.bit_length() for one in self.fields) > _MOST_BITS",
        "not self.fields",
        "client/test_waves.py",
    ),
    Mutation(
        "client/_fields.py",
        "return self.steps is None and not all(column.whole for column in self.columns)",
        "return False",
        "client/test_waves.py",
    ),
    Mutation("learning/_bucket_scores.py", "[:, : law.n_chosen]", "[:, :1]", "mechanisms/test_longitudinal_laws.py"),
]
