"""Faults of queries, filters and decisions."""

from mutations.fault_table._mutation import CHARGED, DRIVER, ERASED, PARTS, SHUFFLED, SOFTMAX, Mutation

__all__ = ["MUTATIONS"]

ANSWERS = "accounting/test_sampled_answers.py"
BUDGETS = "accounting/test_budget_edges.py accounting/test_filters.py accounting/test_decisions.py"

MUTATIONS = [
    Mutation(
        "accounting/_blanket_laws.py",
        "known = all(one.laws for one in columns)",
        "known = True",
        "accounting/test_shuffle.py",
    ),
    # Answers and budgets.
    Mutation("accounting/_finite_query.py", "(words[:, None] >= below)", "(words[:, None] > below)", ANSWERS),
    Mutation(
        "accounting/_regression_query.py",
        "np.clip(rarer, flip_threshold(self.epsilon), np.uint64(2**63))",
        "np.clip(rarer, flip_threshold(self.epsilon * 1.001), np.uint64(2**63))",
        ANSWERS,
    ),
    Mutation(
        "accounting/_regression_query.py",
        "np.where(high <= low, rarer, ~rarer + np.uint64(1))",
        "np.where(high <= low, rarer, ~rarer)",
        ANSWERS,
    ),
    Mutation(
        "accounting/_regression_query.py",
        "rarer = (np.minimum(low, high) * 2.0**64).astype(np.uint64)",
        "rarer = np.minimum(low, 1 - low)\n        rarer = (rarer * 2.0**64).astype(np.uint64)",
        ANSWERS,
    ),
    Mutation(
        "accounting/_regression_query.py",
        "return noise.bernoulli(self.thresholds(X)).astype(np.int8)",
        "return (noise.words(1) < self.thresholds(X)).astype(np.int8)",
        f"{ANSWERS} accounting/test_query.py",
    ),
    Mutation(
        "accounting/_finite_query.py",
        "words = noise.words(len(below))",
        "words = noise.words(1)",
        f"{ANSWERS} accounting/test_query.py",
    ),
    Mutation(
        "accounting/_finite_query.py",
        "return math.log(worst) * (1 + 2.0**-50) + 2.0**-51 if",
        "return math.log(worst) * (1 - 2.0**-50) if",
        ANSWERS,
    ),
    Mutation(
        "accounting/_decide.py",
        "if sum(cost.charge for cost in costs) <= rule.budget:",
        "if sum(cost.charge for cost in costs) <= rule.budget * 1.01:",
        BUDGETS,
    ),
    Mutation(
        "accounting/_decide.py",
        "[*outputs, output], rule.epsilon), rule.budget)",
        "[*outputs, output], rule.epsilon), 1.01 * rule.budget)",
        "accounting/test_filters.py accounting/test_certificates.py accounting/test_decisions.py",
    ),
    Mutation("accounting/_decide.py", "    return all(\n", "    return any(\n", BUDGETS),
    Mutation(
        "accounting/_decide.py",
        "return units_below(self.epsilon)",
        "return units_below(self.epsilon) + 1024",
        CHARGED,
    ),
    Mutation(
        "accounting/_decide.py",
        "    after = added(spent, query)\n",
        "    after = added(spent, query) - added(np.zeros_like(spent), query) // 1000\n",
        f"{BUDGETS} accounting/test_certified.py",
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
        CHARGED,
    ),
    Mutation(
        "accounting/_release_query.py",
        'guarantee.model == "local" and guarantee.delta == 0 and',
        'guarantee.model == "local" and',
        CHARGED,
    ),
    Mutation(
        "accounting/_release_query.py",
        "return None if self.row_charge is None else self.n_rows * self.row_charge",
        "return self.row_charge",
        CHARGED,
    ),
    Mutation("accounting/_release_query.py", "return self.n_rows * self.row_zcdp", "return self.row_zcdp", CHARGED),
    Mutation(
        "accounting/_release_query.py", "charge * charge // (2 * UNITS)", "charge * charge // (4 * UNITS)", CHARGED
    ),
    Mutation(
        "accounting/_release_query.py",
        "if named and self.row_charge != units_above(log_ratio(*self._odds)):",
        "if False:",
        CHARGED,
    ),
    Mutation("accounting/_release_query.py", "(charge if n > 0 else charge - (charge >> 51) - 2)", "charge", CHARGED),
    Mutation("accounting/_release_query.py", "[] if len(seen) == n_classes else [-1]", "[] if True else [-1]", CHARGED),
    Mutation(
        "accounting/_units.py",
        "return math.ceil(Fraction(nats) * UNITS)",
        "return math.floor(Fraction(nats) * UNITS)",
        CHARGED,
    ),
    Mutation(
        "accounting/_units.py",
        "return math.floor(Fraction(nats) * UNITS)",
        "return math.ceil(Fraction(nats) * UNITS)",
        CHARGED,
    ),
    Mutation("accounting/_units.py", "(rest <= low)", "(rest < low)", CHARGED),
    Mutation(
        "accounting/_units.py",
        "carried = sums[..., 0] + (sums[..., 1] >> _LOW_BITS)",
        "carried = sums[..., 0]",
        CHARGED,
    ),
    Mutation(
        "accounting/_composition.py",
        "return math.floor(root * root * UNITS * (1 - _DECIMAL_ERROR))",
        "return math.floor(2 * root * root * UNITS)",
        CHARGED,
    ),
    Mutation(
        "accounting/_decide.py",
        "return rule.budget - max(released_loss([*asked, query], [*outputs, last])",
        "return rule.budget - min(released_loss([*asked, query], [*outputs, last])",
        CHARGED,
    ),
    Mutation(
        "accounting/_decide.py",
        "        return rule.budget - released_loss(asked, outputs)\n",
        "        return rule.budget\n",
        CHARGED,
    ),
    Mutation(
        "accounting/_decide.py",
        "return rule.budget - released_loss(asked, outputs) - charge_of(query)",
        "return rule.budget - released_loss(asked, outputs)",
        CHARGED,
    ),
    Mutation(
        "accounting/_decide.py", "room == 0 and isinstance(query, ReleaseQuery) and not numbers", "room == 0", CHARGED
    ),
    Mutation(
        "accounting/_decide.py",
        "return sum(cost.zcdp for cost in costs) <= rule.zcdp_budget",
        "return costs[-1].zcdp <= rule.zcdp_budget",
        CHARGED,
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
    # Codes, bits and features that are counted by what was released of them.
    Mutation(
        "accounting/_release_query.py",
        "self.own_count * (TWO_64 - self.other_count), self.other_count * (TWO_64 - self.own_count)",
        "self.own_count, self.other_count",
        PARTS,
    ),
    Mutation("accounting/_release_query.py", "if output >> code & 1]", "if not output >> code & 1]", PARTS),
    Mutation("accounting/_release_query.py", "return [1 << code for code", "return [0 << code for code", PARTS),
    Mutation("accounting/_release_query.py", "most = _MOST_BITS if self.own_count else None", "most = None", PARTS),
    Mutation(
        "accounting/_release_query.py",
        "most = self.own_count or TWO_64 // self.n_classes",
        "most = TWO_64 // self.n_classes",
        PARTS,
    ),
    Mutation("accounting/_release_query.py", "and len(mechanism.columns) == 1:", "and mechanism.columns:", PARTS),
    Mutation("accounting/_release_query.py", "else [*sorted(told), untold]", "else sorted(told)", PARTS),
    Mutation(
        "accounting/_release_query.py", "codes = sorted(told) if untold", "codes = [untold or 0] if untold", PARTS
    ),
    # The probability of one class.
    Mutation(
        "accounting/_decide.py", "deepcopy(getattr(self, name))", "getattr(self, name)", "accounting/test_filters.py"
    ),
    Mutation("accounting/_softmax_query.py", "- scores.max(axis=1, keepdims=True)", "", SOFTMAX),
    Mutation("accounting/_softmax_query.py", "odds[:, self.position] / total", "odds[:, self.position]", SOFTMAX),
    Mutation("accounting/_softmax_query.py", '"position": self.position}', '"position": 0}', SOFTMAX),
    Mutation(
        "accounting/_release_query.py",
        "return cls(_ERASED, charge, sum(zcdp_of(query) for query in queries))",
        "return cls(_ERASED, charge, 0 if charge is None else _zcdp_of_pure(charge))",
        ERASED,
    ),
    Mutation(
        "accounting/_release_query.py",
        "if isinstance(query, ReleaseQuery) and query.part is None:\n            return query",
        "if isinstance(query, ReleaseQuery):\n            return query",
        ERASED,
        needs=DRIVER,
    ),
    Mutation("accounting/_units.py", "math.inf if one >= BEYOND_SUMS else", "", "accounting/test_units.py"),
    Mutation("accounting/_shuffle.py", "    check_pure_local(local)\n", "", "accounting/test_shuffle.py"),
    Mutation("accounting/_shuffle.py", "min(n - colluding, MOST_PEOPLE)", "min(n, MOST_PEOPLE)", SHUFFLED),
    Mutation(
        "accounting/_shuffle.py",
        "return 1 / (1 + math.exp(gap)) * (1 + 2.0**-50), 1 / (1 + math.exp(-gap)) * (1 + 2.0**-50)",
        "return 1.0, 0.0",
        "accounting/test_shuffle.py",
    ),
    Mutation("accounting/_shuffle.py", "self.rounds, measure, budget", "1, measure, budget", SHUFFLED),
    Mutation("accounting/_blanket_laws.py", "least = (1 - p) / (1 - q)", "least = (1 - q) / (1 - q)", SHUFFLED),
    Mutation("accounting/_blanket_laws.py", "    if low + high > 1:\n", "    if low + high > 2:\n", SHUFFLED),
    Mutation("accounting/_blanket_laws.py", "grown(2 * n_steps): least", "grown(n_steps): least", SHUFFLED),
    Mutation("accounting/_blanket_laws.py", "- grown(low)) / (1 + one)", "- grown(low)) / (2 + one)", SHUFFLED),
    Mutation(
        "accounting/_blanket_laws.py",
        "if len(mechanism.laws) > 1 and mechanism.n_sampled < mechanism.n_outputs:",
        "if False:",
        SHUFFLED,
    ),
    Mutation("accounting/_blanket_laws.py", "(1 - 2 * cap) * outside", "(1 - cap) * outside", SHUFFLED),
    Mutation("accounting/_blanket_laws.py", "slack=float(law.weights[0]) * _CAP_ERROR / 2", "slack=0.0", SHUFFLED),
    Mutation(
        "accounting/_blanket_laws.py",
        "least = [min(column) for column in columns]",
        "least = [max(column) for column in columns]",
        SHUFFLED,
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
        "accounting/_regression_query.py",
        "growth = self.growth if output == 1 else -self.growth",
        "growth = self.growth",
        "accounting/test_sampled_answers.py",
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
        "scores = weighted_sums(saturated(X, self.n_features),",
        "scores = weighted_sums(np.asarray(X, dtype=np.float64),",
        "accounting/test_class_query.py",
    ),
]
