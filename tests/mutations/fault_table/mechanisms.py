"""Faults of what all mechanisms share."""

from mutations.fault_table._mutation import OR_MISSING, SHUFFLED, SPARSE, SPHERE, Mutation

__all__ = ["MUTATIONS"]

MUTATIONS = [
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
    Mutation("_checks.py", "if len(fields) < len(pairs):", "if False:", "mechanisms/test_domain.py"),
    # Categories.
    Mutation(
        "mechanisms/_domain.py",
        "(unsigned < np.asarray(self.sizes, np.uint64)).all()",
        "(unsigned < np.uint64(max(self.sizes))).all()",
        "mechanisms/test_unary.py",
    ),
    Mutation("mechanisms/_norms.py", "factors * (1 - 2 * np.finfo(values.dtype).eps), 1.0)", "factors, 1.0)", SPHERE),
    Mutation(
        "mechanisms/_norms.py",
        "np.maximum(norms * (1 + _norm_error(values.shape[1])), radius)",
        "np.maximum(norms, radius)",
        SPHERE,
    ),
    Mutation(
        "mechanisms/_domain.py",
        "moved.data * np.repeat(factors, np.diff(moved.indptr))",
        "moved.data",
        f"{SPHERE} mechanisms/test_projection.py",
    ),
    # Domains: what a record can be, how it is moved, and what is proved of it.
    Mutation(
        "mechanisms/_linked.py",
        'np.where(is_tie, cast("int", self.fallback), chosen)',
        "chosen",
        "mechanisms/test_linked.py",
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
        "mechanisms/_row_sums.py",
        "totals += column[:, None].astype(np.float64) * weights",
        "totals = rows.astype(np.float64) @ coef.T + start",
        "accounting/test_any_batch.py mechanisms/test_linked.py",
    ),
    Mutation(
        "mechanisms/_bits/flip_laws.py",
        "own = np.array(getattr",
        "own = np.asarray(getattr",
        "mechanisms/test_flip_laws.py",
    ),
    Mutation(
        "mechanisms/_categorical/label_laws.py",
        'object.__setattr__(self, "prior", tuple(mass.tolist()))',
        "pass",
        "mechanisms/test_row_priors.py",
    ),
    Mutation(
        "mechanisms/_field_key.py",
        "mechanism.domain.clip(np.ascontiguousarray(given))",
        "mechanism.domain.clip(given)",
        "mechanisms/test_field_key.py",
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
    # Shuffled answers: what is cut off, spread or rounded the wrong way, and people who hide nobody.
    Mutation("mechanisms/_lattice_sums.py", "        lost += cost\n", "", "mechanisms/test_shuffling.py"),
    Mutation("mechanisms/_lattice_sums.py", "+= up * odd", "+= 0 * odd", SHUFFLED),
    Mutation(
        "mechanisms/_lattice_sums.py",
        "    kept[0] += masses[:n_left].sum()\n",
        "",
        "mechanisms/test_shuffling.py",
    ),
    Mutation("mechanisms/_shuffling.py", "        return 0.5, 0.5", "        return 0.6, 0.4", SHUFFLED),
    Mutation("mechanisms/_shuffling.py", "share = 1 / (odds + 1)", "share = 1 / odds", SHUFFLED),
    Mutation(
        "mechanisms/_shuffling.py",
        "up = np.minimum(position - below + 2.0**-38, 1.0)",
        "up = np.zeros(position.size)",
        SHUFFLED,
    ),
    Mutation("mechanisms/_shuffling.py", "        if now <= 0:\n", "        if now <= 1:\n", SHUFFLED),
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
    Mutation("mechanisms/_sparse_domain.py", "small = order[rank >= most]", "small = order[:0]", SPARSE),
    Mutation("mechanisms/_sparse_domain.py", 'kind="stable")[:, most:]', 'kind="stable")[:, 2 * most :]', SPARSE),
    # Tables: every column by its mechanism, shares that add up, and nothing taken for declared that was learnt.
    Mutation(
        "mechanisms/_record.py",
        "part._draw(given, noise, drawn, workspace)",
        "part._encode(given, drawn, workspace)",
        "estimators/test_table.py",
    ),
    Mutation("mechanisms/_record.py", "map(round_down, exact)", "map(float, exact)", "estimators/test_table.py"),
    Mutation(
        "mechanisms/_record.py", "given[:, 0] = rows[:, j]", "given[:, 0] = rows[:, 0]", "estimators/test_table.py"
    ),
    Mutation(
        "mechanisms/_record.py",
        "sum_above(*self.exact_epsilons)",
        "max(self.exact_epsilons)",
        "estimators/test_table.py",
    ),
    # Tables with numbers that may be missing, and sets of categories.
    *(
        Mutation("mechanisms/_number_or_missing.py", old, new, OR_MISSING)
        for old, new in (
            ("np.where(missing, told, hidden)", "np.where(missing, told, told)"),
            ("        check_epsilon(epsilon)\n", ""),
            ("round_up(of_numbers)", "float(of_numbers)"),
            ("np.where(missing, self.values.middle, rows)", "np.where(missing, self.values.number.low, rows)"),
            ("self.number._draw(there, noise, out, workspace)", "self.number._encode(there, out, workspace)"),
            ("+ Fraction(unit.loss_from_middle)", "+ 0"),
            ("round_up(of_numbers), unit.exact_epsilon)", "unit.exact_epsilon)"),
            ("left = spent - unit.loss_from_middle", "left = spent - unit.loss_from_middle / 2"),
            ("/ (1 - q)\n", "\n"),
        )
    ),
    Mutation(
        "mechanisms/_columns.py",
        "np.where(missing, rows.dtype.type(np.nan), within)",
        "np.where(missing, rows, within)",
        OR_MISSING,
    ),
    Mutation(
        "mechanisms/_subsets.py",
        "chosen.add(last if number in chosen else number)",
        "chosen.add(number)",
        "mechanisms/test_category_laws.py",
    ),
    Mutation(
        "mechanisms/_subsets.py",
        "binomial * left // place, left - 1",
        "binomial * (left - 1) // place, left - 1",
        "mechanisms/test_group_laws.py",
    ),
]
