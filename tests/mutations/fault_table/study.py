"""Faults of study."""

from mutations.fault_table._mutation import Mutation

__all__ = ["MUTATIONS"]

MUTATIONS = [
    Mutation(
        "study/_study_pipeline.py",
        'options["norm"] = settings.scaled_radius(data)',
        'options["norm"] = "unit"',
        "study/test_large_epsilon.py",
    ),
    Mutation("study/_study_pipeline.py", "np.multiply, 1 / shrink", "np.multiply, 1.0", "study/test_large_epsilon.py"),
    Mutation("study/_rivals.py", "carried * longest <= usual[2]", "carried < 0", "study/test_large_epsilon.py"),
    Mutation(
        "study/_recommend.py", "(epsilon, norm=math.sqrt(d))", '(epsilon, norm="unit")', "study/test_recommend.py"
    ),
    Mutation(
        "study/_tables.py",
        "    except UnicodeError:\n",
        "    except UnicodeError as error:\n        encoding += str(getattr(error, 'start', ''))\n",
        "study/test_tables.py",
    ),
    Mutation(
        "study/_guarantees.py", 'if name == "table" and sizes', 'if name != "table" and sizes', "cli/test_guarantee.py"
    ),
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
    Mutation("study/_federated/hashed_labels.py", "apart = max(", "apart = min(", "study/test_federated_models.py"),
    Mutation(
        "study/_federated/hashed_labels.py", "2 * self.n_hashes)", "self.n_hashes)", "study/test_federated_models.py"
    ),
    Mutation(
        "study/_federated/settings.py",
        "split_epsilon(mechanism.epsilon, n_rounds)",
        "mechanism.epsilon / n_rounds",
        "mechanisms/test_sums_of_epsilons.py",
    ),
    Mutation(
        "study/_federated/settings.py",
        "product_above(guarantee.epsilon, times)",
        "guarantee.epsilon * times",
        "mechanisms/test_sums_of_epsilons.py",
    ),
    Mutation(
        "study/_comparison.py",
        "round_down(Fraction(e) + Fraction(label))",
        "e + label",
        "mechanisms/test_sums_of_epsilons.py",
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
    Mutation("study/_federated/settings.py", "delta, rounds=times)", "delta)", "study/test_federated.py"),
    Mutation("study/_federated/settings.py", "seeded=once.seeded)", "seeded=False)", "study/test_federated.py"),
    Mutation("study/_planning.py", "repeat=True", "repeat=False", "study/test_planning.py"),
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
    Mutation("study/_choice.py", "if folds and self.param_name is None:", "if False:", "study/test_grid_search.py"),
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
    Mutation("study/_choice.py", "if len(names) != 1:", "if not names:", "study/test_grid_search.py"),
    Mutation(
        "study/_comparison.py", "asked + (asked if fixed is None else fixed):g", "asked:g", "study/test_comparison.py"
    ),
]
