"""Faults of laws by their integers."""

from mutations.fault_table._mutation import Mutation

__all__ = ["MUTATIONS"]

MUTATIONS = [
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
        "mechanisms/_code_laws.py",
        "next(words) < (self.own_count",
        "next(words) <= (self.own_count",
        "mechanisms/test_integer_laws.py",
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
        "sum_above(*(log_ratio(TWO_64 - t, t) for t in self.flip_counts))",
        "max(log_ratio(TWO_64 - t, t) for t in self.flip_counts)",
        "mechanisms/test_bin_laws.py",
    ),
    Mutation(
        "mechanisms/_bin_laws.py",
        "        if self._gain < 1:\n",
        "        if self._gain < 0:\n",
        "mechanisms/test_bin_laws.py",
    ),
    Mutation(
        "mechanisms/_group_laws.py", " and not isinstance(one, TwoStepLaw)", "", "mechanisms/test_longitudinal_laws.py"
    ),
]
