"""Faults of noise, and of releases that are bound to a key."""

from mutations.fault_table._mutation import CATEGORIES, CHARGED, NUMBERS, Mutation

__all__ = ["MUTATIONS"]

NOISE = "mechanisms/test_randomness.py"

MUTATIONS = [
    # The noise itself.
    Mutation("mechanisms/_noise.py", "if os.getpid() != self._pid:", "if False:", NOISE),
    Mutation(
        "mechanisms/_noise.py",
        "        self._refuse_after_fork()\n        with self._lock:\n            children",
        "        with self._lock:\n            children",
        NOISE,
    ),
    Mutation(
        "mechanisms/_noise.py",
        "        self._refuse_after_fork()\n        with self._lock:\n            position",
        "        with self._lock:\n            position",
        NOISE,
    ),
    Mutation(
        "mechanisms/_noise.py",
        "        with self._lock:\n            children = range(self._n_children, self._n_children + n)\n"
        "            self._n_children += n",
        "        children = range(self._n_children, self._n_children + n)\n        self._n_children += n",
        NOISE,
    ),
    Mutation("mechanisms/_noise.py", "            self._n_children += n\n", "", NOISE),
    Mutation(
        "mechanisms/_noise.py",
        "return Noise(os.urandom(32), secure=True)",
        "return Noise(bytes(32), secure=True)",
        NOISE,
    ),
    Mutation(
        "mechanisms/_noise.py",
        "self.words(t.shape if size is None else size) < t",
        "self.words(t.shape if size is None else size) <= t",
        NOISE,
    ),
    Mutation(
        "mechanisms/_noise.py",
        "last = np.uint64(2**64 - 1 - 2**64 % high)",
        "last = np.uint64(2**64 - 1)",
        f"{NOISE} {CATEGORIES}",
    ),
    Mutation(
        "mechanisms/_noise.py",
        "again = np.flatnonzero(words > last)",
        "again = np.flatnonzero(words >= last)",
        CATEGORIES,
    ),
    Mutation(
        "mechanisms/_odds.py",
        "np.ceil(small_side * (1 + _EXPIT_ERROR) * 2.0**64)",
        "np.floor(small_side * (1 - _EXPIT_ERROR) * 2.0**64)",
        NOISE,
    ),
    Mutation("mechanisms/_odds.py", "* (1 - _EXPIT_ERROR) * 2.0**63).astype", "* (1 + 1e-9) * 2.0**63).astype", NOISE),
    Mutation(
        "mechanisms/_noise.py",
        "draws[taken[row_starts + draws]] = newest",
        "draws[taken[row_starts + draws]] = 0",
        f"{NOISE} {NUMBERS}",
    ),
    Mutation(
        "mechanisms/_noise.py",
        "while len(view) - position > _SLACK:",
        "while len(view) - position > 2 * _SLACK:",
        NOISE,
        survives="what one way of writing leaves over the other writes: the key stream is the same",
    ),
    Mutation("mechanisms/_rows.py", "noise if whole else noise.block(part)", "noise", "mechanisms/test_rows.py"),
    Mutation(
        "mechanisms/_odds.py",
        "np.less(draws, leading, out=out)",
        "np.less_equal(draws, leading, out=out)",
        CATEGORIES,
        survives="a draw whose first 16 bits are those of the count is decided anew by the 48 others",
    ),
    Mutation(
        "mechanisms/_odds.py",
        "= further < rest",
        "= further <= rest",
        CATEGORIES,
    ),
    Mutation(
        "mechanisms/_odds.py",
        "to_integral_value(rounding=ROUND_CEILING)",
        "to_integral_value(rounding=ROUND_FLOOR)",
        CATEGORIES,
    ),
    Mutation(
        "mechanisms/_odds.py",
        "return value if Decimal(value) >= most else math.nextafter(value, math.inf)",
        "return math.nextafter(value, 0.0)",
        f"{CATEGORIES} mechanisms/test_categorical.py",
    ),
    Mutation(
        "mechanisms/_odds.py",
        "context.multiply(context.add(own, other), DECIMAL_ERROR))",
        "Decimal(0))",
        "mechanisms/test_categorical.py",
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
        CATEGORIES,
    ),
    Mutation(
        "mechanisms/_rows.py",
        "features = noise.subsets(len(rows), d, k)",
        "features = np.tile(noise.subsets(1, d, k), (len(rows), 1))",
        f"{NUMBERS} mechanisms/test_feature_sampling.py",
    ),
    Mutation("mechanisms/_odds.py", "down.multiply(Decimal(least), 1 - _HAIR)", "Decimal(least)", CHARGED),
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
    # What is seen by other bounds or buckets.
    Mutation(
        "mechanisms/_field_key.py",
        "(*texts, seen_by) if seen_by else texts",
        "texts",
        "mechanisms/test_longitudinal.py",
    ),
    Mutation(
        "mechanisms/_longitudinal.py",
        "codes, ids, seen_by=seen_by)",
        "codes, ids)",
        "mechanisms/test_longitudinal.py",
    ),
    Mutation(
        "mechanisms/_longitudinal.py",
        "wave=wave, seen_by=seen_by)",
        "wave=wave)",
        "mechanisms/test_longitudinal.py",
    ),
    Mutation(
        "mechanisms/_longitudinal_mean.py",
        'f"the ends of {ends_text(self._box)}"',
        '"the ends"',
        "mechanisms/test_longitudinal.py",
    ),
    Mutation(
        "mechanisms/_longitudinal_histogram.py",
        'f"{choice} of {ends_text(self._box)}"',
        "choice",
        "mechanisms/test_longitudinal.py",
    ),
    Mutation(
        "mechanisms/_longitudinal_histogram.py",
        'f"{choice} of {ends_text(self._box)}"',
        "ends_text(self._box)",
        "mechanisms/test_longitudinal.py",
    ),
    Mutation(
        "mechanisms/_longitudinal.py",
        "checked), ids, key, wave, choice)",
        "checked), ids, key, wave)",
        "mechanisms/test_longitudinal.py",
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
        "key.release(self.first, codes, ids, seen_by=seen_by)",
        "key.release(self.first, codes, ids, wave=wave, seen_by=seen_by)",
        "mechanisms/test_longitudinal.py",
    ),
    Mutation(
        "mechanisms/_longitudinal.py",
        "kept.astype(np.int64), ids, wave=wave, seen_by=seen_by)",
        "kept.astype(np.int64), ids, seen_by=seen_by)",
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
]
