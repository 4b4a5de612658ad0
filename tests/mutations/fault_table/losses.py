"""Faults of certified losses."""

from mutations.fault_table._mutation import CHARGED, SOFTMAX, Mutation

__all__ = ["MUTATIONS"]

CERTIFIED = "accounting/test_sampled_answers.py accounting/test_certificates.py accounting/test_certified.py"
CHOICES = "accounting/test_region_choices.py"
ADDED = "accounting/test_added_losses.py"
DOMAINS = "accounting/test_domains.py"

MUTATIONS = [
    Mutation(
        "accounting/_extrema/realized_loss.py",
        "math.fsum(query.exact_epsilon for query in queries), math.inf)",
        "math.fsum(query.exact_epsilon for query in queries) * 0.99, math.inf)",
        "accounting/test_extrema.py accounting/test_certificates.py",
    ),
    Mutation(
        "accounting/_extrema/realized_loss.py",
        "nats_above(units_above(found.upper) + int(charges)),",
        "nats_above(units_above(found.upper)),",
        CHARGED,
    ),
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
        "accounting/_extrema/linear_cohort.py",
        "    depths += vertex_rounding(law, counts)\n",
        "",
        CERTIFIED,
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
        CERTIFIED,
    ),
    Mutation(
        "accounting/_extrema/sampled_law.py",
        "low @ up + high @ down + (self.offset - self.error)",
        "low @ up + high @ down + self.offset",
        CERTIFIED,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "= (count @ still + (count * np.abs(slopes)) @ per_slope) * (1 + 2.0**-20)",
        "= 0.0 * (count @ still)",
        CERTIFIED,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "np.maximum(tilt * box_low, tilt * box_high)",
        "(tilt * (box_low + box_high) / 2)",
        CERTIFIED,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "best = np.maximum(best, np.where((low < 0) & (high > 0), sign * np.log(q), -np.inf))",
        "pass",
        CERTIFIED,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "best = np.maximum(best, np.where((low < 1) & (high > 1), np.log(q + t) - slopes, -np.inf))",
        "pass",
        CERTIFIED,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "(slopes > 0) & (stationary + uncertain >= np.maximum(low, 0.0))",
        "(slopes > 0) & (stationary >= np.maximum(low, 0.5))",
        CERTIFIED,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "- slopes * w + gain",
        "- slopes * w",
        CERTIFIED,
        survives="what is lost is of the square of the rounding that moves the stationary point",
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "np.maximum(begin, least[part] - law.error)",
        "np.maximum(begin, least[part] + law.error)",
        CERTIFIED,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "if tree.to_the_ends and (law.region is not None or not peaks_at_vertices(law, sign)):",
        "if False:",
        CERTIFIED,
    ),
    Mutation("accounting/_extrema/certificate.py", "(least >= -4 * law.error)", "(least >= -1e-3)", CERTIFIED),
    Mutation(
        "accounting/_extrema/certificate.py",
        "bool(np.where(law.logistic, smooth, ramps).all())",
        "bool(np.where(law.logistic, smooth, ramps).any())",
        CERTIFIED,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "w = sums + (law.offset + sign * law.error)",
        "w = sums + (law.offset - sign * law.error)",
        CERTIFIED,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "return best + float(vertex_rounding(law, law.count)), region",
        "return best, region",
        CERTIFIED,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "abs(total) - 32 * UNIT * math.fsum(sizes)",
        "abs(total) + 1e-6 * math.fsum(sizes)",
        CERTIFIED,
    ),
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
        "accounting/_extrema/region.py",
        "limits = limits + (4 * d + 8) * UNIT * (reach + np.abs(limits))",
        "limits = limits + 0 * reach",
        DOMAINS,
    ),
    Mutation(
        "accounting/_extrema/region.py",
        "np.full(len(low), block.at_most_one) &",
        "np.full(len(low), False) &",
        DOMAINS,
    ),
    Mutation(
        "accounting/_extrema/region.py",
        "possible &= (high[:, block.columns] >= 1).any(axis=1)",
        "possible &= (high[:, block.columns] >= 1).all(axis=1)",
        DOMAINS,
    ),
    Mutation(
        "accounting/_extrema/region.py",
        "paid = np.maximum(np.nan_to_num(prices, posinf=0.0, neginf=0.0), 0.0)",
        "paid = np.nan_to_num(prices, posinf=0.0, neginf=0.0)",
        DOMAINS,
    ),
    Mutation(
        "accounting/_extrema/region.py",
        "held = (left <= self._loose_limits).all(axis=1)",
        "held = (left + 0.1 <= self._loose_limits).all(axis=1)",
        DOMAINS,
    ),
    # Boxes of a domain that are searched together.
    Mutation("accounting/_extrema/region.py", "self.ends[0] + digit, 0", "digit, 0", CHOICES),
    Mutation("accounting/_extrema/relaxation.py", "(scaled * offset).sum(axis=1)", "scaled @ problem.offset", CHOICES),
    Mutation("accounting/_extrema/region_choices.py", "@ self._half + law.offset", "@ self._half", CHOICES),
    Mutation("accounting/_extrema/region_choices.py", "levels.append(lower + chosen)", "levels.append(lower)", CHOICES),
    Mutation("accounting/_extrema/region_choices.py", "nodes[self._codes]", "nodes[: len(self._codes)]", CHOICES),
    Mutation(
        "accounting/_extrema/region_choices.py",
        "_MOST_WITH_NUMBERS if widths[at] >= _MANY_STEPS else _MOST_CHOICES",
        "_MOST_CHOICES",
        CHOICES,
    ),
    Mutation(
        "accounting/_extrema/region_choices.py",
        "_MOST_WITH_NUMBERS if widths[at] >= _MANY_STEPS else _MOST_CHOICES",
        "_MOST_WITH_NUMBERS",
        CHOICES,
    ),
    Mutation(
        "accounting/_extrema/region_choices.py",
        "return self._sign * self._search.multipliers",
        "return self._search.multipliers",
        CHOICES,
    ),
    Mutation("accounting/_extrema/region_search.py", ", (self._cut_boxes, _MAX_NODES)]", "]", CHOICES),
    Mutation(
        "accounting/_extrema/realized_loss.py", "math.nextafter(own + shares, math.inf)", "max(own, shares)", ADDED
    ),
    Mutation(
        "accounting/_extrema/region.py",
        "np.nan_to_num(np.clip(given, -LARGEST, LARGEST), nan=-LARGEST)",
        "np.clip(given, -LARGEST, LARGEST)",
        DOMAINS,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "np.where(whole, np.floor(middle) + 1, middle)",
        "np.where(whole, np.floor(middle) + 2, middle)",
        DOMAINS,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "bounds_at(law, sign, sums, kinked=region.is_finite)",
        "bounds_at(law, sign, sums, kinked=False)",
        DOMAINS,
    ),
    Mutation(
        "accounting/_extrema/certificate.py",
        "if not region.is_finite and not peaks_at_vertices(law, sign):",
        "if False:",
        DOMAINS,
    ),
    Mutation("accounting/_extrema/point_cohort.py", "fits &= loss", "fits |= loss", DOMAINS),
    Mutation("accounting/_extrema/point_cohort.py", "(sums + table[column])", "sums", DOMAINS),
    Mutation(
        "accounting/_extrema/point_cohort.py",
        "after[:, column] += 1",
        "after[:, column] += 0",
        DOMAINS,
        survives="it counts in what roundings are allowed alone, of which one answer more is a part in a million",
    ),
    Mutation("accounting/_extrema/realized_loss.py", "2 * len(outputs) * query.rounding", "0.0", SOFTMAX),
    Mutation("accounting/_extrema/realized_loss.py", "own + shares, math.inf)", "own, 1)", SOFTMAX),
    Mutation("accounting/_extrema/realized_loss.py", "nats_above(len(outputs) *", "nats_above(1 *", SOFTMAX),
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
]
