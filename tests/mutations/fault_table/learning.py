"""Faults of learning."""

from mutations.fault_table._mutation import COLLECTOR, Mutation

__all__ = ["MUTATIONS"]

SCORES = "learning/test_answer_scores.py"

MUTATIONS = [
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
        "learning/_tasks.py",
        "np.unique(rows % len(target)).size < len(rows):",
        "False:",
        "learning/test_attacks.py",
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
        "learning/_tasks.py",
        "if not (np.abs(numbers) <= _MOST).all():",
        "if (np.abs(numbers) > _MOST).any():",
        "learning/test_tasks.py",
    ),
    Mutation("learning/_tasks.py", '_check_size("matrix", rows)', "pass", "learning/test_tasks.py"),
    Mutation("learning/_tasks.py", "    _check_size(name, np.array(numbers))\n", "", "learning/test_tasks.py"),
    Mutation("learning/_documents.py", '"task": 2', '"task": 1', "learning/test_tasks.py"),
    Mutation("learning/_documents.py", "text, strict_mode=True", "text", "learning/test_tasks.py"),
    Mutation("learning/_documents.py", ", object_pairs_hook=each_once", "", "learning/test_tasks.py"),
    Mutation("learning/_documents.py", ' and type(given["version"]) is int', "", "learning/test_tasks.py"),
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
        "learning/_survey_estimates.py",
        "np.argmax(shares + reach >= one)",
        "np.argmax(shares >= one)",
        "learning/test_survey_estimates.py",
    ),
    Mutation(
        "learning/_survey_estimates.py",
        "ends[1][last[-1] + 1 if len(last) else 0]",
        "ends[1][last[-1] if len(last) else 0]",
        "learning/test_survey_estimates.py",
    ),
    Mutation(
        "learning/_survey_estimates.py",
        "width, outside = sums.a_high - sums.a_low, (1 - level) / 2",
        "width, outside = sums.a_high - sums.a_low, 1 - level",
        "learning/test_survey_estimates.py",
    ),
    Mutation(
        "learning/_survey_estimates.py",
        "if sums.two_valued and sums.b_low == sums.b_high == 1:",
        "if False:",
        "learning/test_survey_estimates.py",
    ),
    Mutation(
        "learning/_answer_scores.py",
        "law, law.n_answers == law.block_size",
        "law, True",
        "learning/test_answer_scores.py",
    ),
    Mutation(
        "learning/_survey_estimates.py",
        "kept, spread = np.clip(values, low, high),",
        "kept, spread = values,",
        "learning/test_survey_estimates.py",
    ),
    Mutation(
        "learning/_answer_scores.py",
        "return _of_bits(n, p, (law.set_size - p) / (n - 1))",
        "return _of_bits(n, p, law.set_size / n)",
        SCORES,
    ),
    Mutation(
        "learning/_answer_scores.py",
        "self._gain = 1 - law.miss_count / TWO_64 * (1 + law.block_size / 2 / others)",
        "self._gain = 1 - law.miss_count / TWO_64",
        SCORES,
    ),
    Mutation(
        "learning/_answer_scores.py",
        "(held * (1 - 2 * self.q) + self.q**2 * total) / gain**2",
        "held * (1 - self.q) ** 2 / gain**2",
        SCORES,
    ),
    Mutation(
        "learning/_answer_scores.py",
        "(law.value(answer) ** 2 - constant) / (1 + square) / share",
        "(law.value(answer) ** 2 - constant) / (1 + square)",
        SCORES,
    ),
    Mutation(
        "learning/_answer_scores.py",
        "return [0, half - 1, half, law.n_answers - 1]",
        "return [0, law.n_answers - 1]",
        SCORES,
    ),
    Mutation(
        "learning/_survey_estimates.py", "left = 1 - share * self.held", "left = np.ones_like(self.held)", COLLECTOR
    ),
    Mutation(
        "learning/_survey_estimates.py",
        "np.where(bounded, low, -np.inf), np.where(bounded, high, np.inf)",
        "low, high",
        COLLECTOR,
    ),
    Mutation(
        "learning/_survey_estimates.py", "v_aa - 2 * R * v_ab + R**2 * v_bb, 0.0)) / B", "v_aa, 0.0)) / B", COLLECTOR
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
    Mutation("learning/_survey_estimates.py", "low=np.minimum(low, shares),", "low=low,", COLLECTOR),
    Mutation("learning/_bucket_scores.py", "[:, : law.n_chosen]", "[:, :1]", "mechanisms/test_longitudinal_laws.py"),
]
