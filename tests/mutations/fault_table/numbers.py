"""Faults of numbers."""

from mutations.fault_table._mutation import CHARGED, NUMBERS, OR_MISSING, Mutation

__all__ = ["MUTATIONS"]

MUTATIONS = [
    # Numbers.
    Mutation(
        "mechanisms/_numeric/duchi.py",
        "up[close] = words.view(np.int64) < self",
        "up[close] = words.view(np.int64) <= self",
        NUMBERS,
    ),
    Mutation(
        "mechanisms/_numeric/duchi.py",
        "up = noise.words(x.shape).view(np.int64) < self",
        "up = noise.words(x.shape).view(np.int64) <= self",
        NUMBERS,
    ),
    Mutation("mechanisms/_numeric/duchi.py", "_FIRST_ERROR = 2\n", "_FIRST_ERROR = 0\n", NUMBERS),
    Mutation(
        "mechanisms/_numeric/duchi.py",
        "2**63 + self.slope, 2**63 - self.slope",
        "2**63 + self.slope, 2**63",
        NUMBERS,
    ),
    Mutation("mechanisms/_numeric/three_outputs.py", "(words < to_wrong)", "(words <= to_wrong)", NUMBERS),
    Mutation("mechanisms/_numeric/three_outputs.py", "(words >= to_zero)", "(words > to_zero)", NUMBERS),
    Mutation(
        "mechanisms/_numeric/three_outputs.py",
        "at_one = math.ceil(",
        "at_one = math.floor(",
        f"{NUMBERS} mechanisms/test_numeric_laws.py",
        survives="one part in 2^64, within what calibration_epsilon keeps below epsilon; the figure is of the integers",
    ),
    Mutation(
        "mechanisms/_numeric/three_outputs.py",
        "return max(of_sign, log_ratio(zero, zero_end, in_doubles=True)) if zero else of_sign",
        "return of_sign",
        f"{NUMBERS} mechanisms/test_numeric_laws.py",
    ),
    Mutation(
        "mechanisms/_numeric/piecewise.py",
        "again = np.flatnonzero(drawn >= total)",
        "again = np.flatnonzero(drawn > total)",
        NUMBERS,
    ),
    Mutation(
        "mechanisms/_numeric/piecewise.py",
        "near >>= 63",
        "near >>= 62",
        NUMBERS,
    ),
    Mutation("mechanisms/_numeric/piecewise.py", "part += near\n", "part += near - 1\n", NUMBERS),
    Mutation(
        "mechanisms/_numeric/piecewise.py",
        "return log_ratio(base + extra, base, in_doubles=True)",
        "return log_ratio(base + extra, base + 1, in_doubles=True)",
        NUMBERS,
        survives="one part in 2^60 of a ratio that log_ratio rounds up by more",
    ),
    Mutation(
        "mechanisms/_numeric/hybrid.py",
        "chosen = noise.bernoulli(np.uint64(self.threshold), x.shape)",
        "chosen = noise.bernoulli(np.uint64(self.threshold - 1), x.shape)",
        NUMBERS,
    ),
    Mutation(
        "mechanisms/_numeric/duchi.py",
        "want = noise.bernoulli(np.uint64(self.threshold), n)",
        "want = noise.bernoulli(np.uint64(self.threshold + 2**50), n)",
        NUMBERS,
    ),
    Mutation(
        "mechanisms/_numeric/duchi.py",
        "negate &= 2 * n_disagree != d",
        "negate &= True",
        NUMBERS,
        survives="a tie negated is a tie, and its negative is as likely",
    ),
    Mutation(
        "mechanisms/_numeric/duchi.py",
        "twice == d, twice < d)",
        "twice == d, twice <= d)",
        f"{NUMBERS} mechanisms/test_numeric_laws.py",
    ),
    Mutation(
        "mechanisms/_numeric/discrete_noise.py",
        "return 0 if high * denominator < numerator else None",
        "return 0 if low * denominator < numerator else None",
        NUMBERS,
    ),
    Mutation(
        "mechanisms/_numeric/discrete_noise.py", "again = again[_is_odd(words[again])]", "again = again[:0]", NUMBERS
    ),
    Mutation(
        "mechanisms/_numeric/discrete_noise.py",
        "several.argmax(axis=1)",
        "several.argmin(axis=1)",
        NUMBERS,
    ),
    Mutation("mechanisms/_numeric/discrete_noise.py", "np.flatnonzero(~kept)", "np.flatnonzero(kept)[:0]", NUMBERS),
    Mutation(
        "mechanisms/_numeric/discrete_noise.py",
        "drawn = noise.at(small, words.size).words(small.size)",
        "drawn = noise.words(small.size)",
        NUMBERS,
    ),
    Mutation(
        "mechanisms/_numeric/duchi.py",
        "noise.at(close, x.size).words(close.size)",
        "noise.words(close.size)",
        NUMBERS,
    ),
    Mutation(
        "mechanisms/_numeric/unit_interval.py",
        "return (squares - constant) / (1 + square)",
        "return squares / (1 + square)",
        "mechanisms/test_numeric_laws.py",
    ),
    Mutation("mechanisms/_numeric/discrete_noise.py", "_LOG_ERROR = 2.0**-45", "_LOG_ERROR = 0.0", NUMBERS),
    Mutation("mechanisms/_numeric/discrete_noise.py", "cost -= sigma\n", "cost -= sigma - 1\n", NUMBERS),
    Mutation(
        "mechanisms/_numeric/additive.py",
        "below += noise.bernoulli(up)",
        "below += noise.bernoulli(np.uint64(2**63), up.shape)",
        NUMBERS,
    ),
    Mutation(
        "mechanisms/_numeric/additive.py",
        "return discrete_gaussian(self.sigma, size, noise)",
        "return discrete_gaussian(self.sigma - 1, size, noise)",
        NUMBERS,
    ),
    Mutation(
        "mechanisms/_numeric/additive.py",
        "return round_up(Fraction(2) ** (self.lattice_exponent + 1) / self.scale)",
        "return float(Fraction(2) ** self.lattice_exponent / self.scale)",
        f"{NUMBERS} mechanisms/test_additive.py",
    ),
    Mutation(
        "mechanisms/_numeric/additive.py",
        "self.n_values * 4 ** (self.lattice_exponent + 1)",
        "self.n_values * 4**self.lattice_exponent",
        CHARGED,
    ),
    Mutation(
        "mechanisms/_numeric/bounded_features.py",
        "return None if of_one is None else of_one * (self.n_sampled // self.mechanism.n_outputs)",
        "return of_one",
        CHARGED,
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
        "mechanisms/_numeric/duchi.py",
        "return log_ratio(2**63 + self.slope, 2**63, in_doubles=True)",
        "return 0.0",
        OR_MISSING,
    ),
    Mutation(
        "mechanisms/_numeric/three_outputs.py",
        "(wrong - wrong_lost), wrong, in_doubles=True)",
        "(wrong - wrong_lost), zero + wrong, in_doubles=True)",
        OR_MISSING,
    ),
    Mutation(
        "mechanisms/_numeric/distribution.py",
        "np.clip(beyond, 0, law.n_inner)",
        "np.maximum(beyond, 0)",
        "mechanisms/test_square_wave.py",
    ),
    Mutation(
        "collection/_survey_fields.py",
        "spread=not is_exact",
        "spread=False",
        "collection/test_bias.py",
    ),
    Mutation(
        "mechanisms/_numeric/distribution.py",
        "if n * (factors.max() - 1) < n_inputs / 16:",
        "if True:",
        "mechanisms/test_square_wave.py",
    ),
    Mutation(
        "mechanisms/_numeric/distribution.py",
        "ends = np.floor(tops * law.reach +",
        "ends = np.ceil(tops * law.reach +",
        "collection/test_bias.py",
    ),
    Mutation(
        "mechanisms/_numeric/distribution.py",
        "np.clip((0.0025 * _unit_variance(law) / n) ** (1 / 3)",
        "np.clip((1.0 * _unit_variance(law) / n) ** (1 / 3)",
        "collection/test_bias.py",
    ),
    Mutation(
        "mechanisms/_numeric/distribution.py",
        "math.ceil((n / (0.04 * _unit_variance(law))) ** (1 / 3))",
        "40",
        "mechanisms/test_square_wave.py",
    ),
    Mutation(
        "mechanisms/_numeric/distribution.py",
        "before * after / (before + after) / self._gain**2",
        "np.minimum(before, after) / self._gain**2",
        "mechanisms/test_square_wave.py",
    ),
    Mutation(
        "mechanisms/_numeric/piecewise.py",
        "return (math.expm1(epsilon) - epsilon) / (epsilon + math.expm1(-epsilon))",
        "return (math.expm1(epsilon) - epsilon) / epsilon",
        "mechanisms/test_square_wave.py",
    ),
    Mutation(
        "mechanisms/_number_or_missing.py",
        "min(epsilon, LARGEST_EPSILON), []",
        "epsilon, []",
        "mechanisms/test_number_or_missing.py",
    ),
]
