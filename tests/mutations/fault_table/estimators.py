"""Faults of estimators."""

from mutations.fault_table._mutation import Mutation

__all__ = ["MUTATIONS"]

MISSING = "estimators/test_missing_values.py"
OF_CLASS = "estimators/test_class_probability.py"
QUESTIONS_AGAIN = "estimators/test_questions_made_again.py"
WHOLES = "estimators/test_whole_guarantee.py estimators/test_counted_releases.py estimators/test_composition.py"
PROMISES = "estimators/test_promise.py"
PEOPLE = "estimators/test_people.py estimators/test_bayesian_filter.py"

MUTATIONS = [
    Mutation(
        "estimators/_labels.py",
        'own.kind == dtype.kind and np.can_cast(own, dtype, "safe")',
        'np.can_cast(own, dtype, "same_kind")',
        "estimators/test_out_of_core.py",
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
    Mutation(
        "estimators/_labels.py",
        "json.dumps([self.part, self.classes_.tolist()], default=str)",
        "self.part",
        "estimators/test_charged.py",
    ),
    # Missing values.
    Mutation("estimators/_bayesian_filter.py", "features=names, missing=self._missing)", "features=names)", MISSING),
    Mutation("estimators/_bayesian_filter.py", "np.where(np.isnan(X), self._missing, X)", "np.nan_to_num(X)", MISSING),
    Mutation("estimators/_from_estimator.py", "filled = is_frozen and", "filled = True and", MISSING),
    Mutation("estimators/_from_estimator.py", "- theirs) <= 1e-5).all())", "- theirs) <= 1e5).all())", OF_CLASS),
    Mutation("estimators/_bayesian_filter.py", "of_class=self.of_class\n", "\n", OF_CLASS),
    Mutation("estimators/_bayesian_filter.py", "idempotency_key=key,", "idempotency_key=None,", QUESTIONS_AGAIN),
    Mutation(
        "estimators/_bayesian_filter.py",
        "if key is not None and ids is None and self.ids is None:",
        "if False:",
        QUESTIONS_AGAIN,
    ),
    # The guarantee of a whole, what was promised, and who people are.
    Mutation("estimators/_composition.py", "not frozen and not ignores_labels(step):", "False:", WHOLES),
    Mutation("estimators/_composition.py", "elif holds_guarantee(step):", "elif False:", WHOLES),
    Mutation("estimators/_composition.py", "elif type(step) is Pipeline:", "elif isinstance(step, Pipeline):", WHOLES),
    Mutation("estimators/_composition.py", "leaks, notes = list(self.repeated)", "leaks, notes = list()", WHOLES),
    Mutation(
        "estimators/_composition.py",
        'if getattr(pipeline, "transform_input", None) and given.raw:',
        "if False:",
        WHOLES,
    ),
    Mutation(
        "estimators/_composition.py",
        'if getattr(step, "stages", 1) > 1 and holds_guarantee(step.estimator_):',
        "if False:",
        "estimators/test_label_stages.py",
    ),
    Mutation(
        "estimators/_guarantee_mixin.py",
        'states = getattr_static(step, "privacy_guarantee_", None) is not None',
        "states = True",
        WHOLES,
    ),
    Mutation(
        "estimators/_public_steps.py",
        "return len(declared) == len(kept) and all(map(_is_same, declared, kept))",
        "return True",
        "estimators/test_public_steps.py",
    ),
    Mutation(
        "estimators/_public_steps.py",
        "return PublicEffect() if declared else None",
        "return PublicEffect()",
        "estimators/test_public_steps.py",
    ),
    Mutation("estimators/_composition.py", "if self.passing and not leaks:", "if False:", WHOLES),
    Mutation(
        "estimators/_composition.py",
        "product_above(stretch, float_above(factor))",
        "stretch * factor",
        WHOLES,
    ),
    Mutation("estimators/_composition.py", "    return math.nextafter(norm, math.inf)\n", "    return norm\n", WHOLES),
    Mutation(
        "estimators/_composition.py",
        "given.raw and callable(columns) and type(columns) is not make_column_selector",
        "False",
        WHOLES,
    ),
    Mutation("estimators/_selected_columns.py", "< len(columns)\n", "< 0\n", WHOLES),
    Mutation("estimators/_composition.py", "norm = math.hypot(*known)", "norm = max(known)", WHOLES),
    Mutation("estimators/_guarantee_mixin.py", "        if changed:\n", "        if False:\n", PROMISES),
    Mutation(
        "estimators/_guarantee_mixin.py",
        '_may_change = frozenset({"n_jobs", "verbose"})',
        '_may_change = frozenset({"n_jobs", "verbose", "seed"})',
        PROMISES,
    ),
    Mutation(
        "estimators/_guarantee_mixin.py", "    if type(before) is not type(now):\n        return False\n", "", PROMISES
    ),
    Mutation(
        "estimators/_guarantee_mixin.py",
        "else array.tobytes()",
        "else b''",
        PROMISES,
    ),
    Mutation(
        "estimators/_guarantee_mixin.py",
        "return type(value), [_copied(one) for one in value]",
        "return value",
        PROMISES,
    ),
    Mutation(
        "estimators/_guarantee_mixin.py",
        'basis = f"{guarantee.basis}; if each person takes part once, in one call of fit or partial_fit"',
        "basis = guarantee.basis",
        PROMISES,
    ),
    Mutation("estimators/_ledgers.py", "_WHOLE_IN_SINGLE = 2.0**24", "_WHOLE_IN_SINGLE = 2.0**25", PEOPLE),
    Mutation("estimators/_ledgers.py", "& (ids == np.floor(ids))", "", PEOPLE),
    Mutation("estimators/_ledgers.py", "if where in names and where in levels:", "if False:", PEOPLE),
    Mutation("estimators/_ledgers.py", "if column != position]", "if True]", PEOPLE),
    Mutation(
        "estimators/_composition.py",
        "self.of_targets |= get_tags(step).target_tags.required and not of_releases",
        "self.of_targets |= False",
        "estimators/test_private_guarantees.py",
    ),
    Mutation(
        "estimators/_learning.py",
        ".spawn(3 + estimator._n_calls)[-1]",
        ".spawn(3)[-1]",
        "estimators/test_private_guarantees.py",
    ),
    Mutation(
        "estimators/_linear_classifier.py",
        "rows, codes = self._records(X, y, self.classes_, reset=False)",
        "rows, codes = self._records(X, y, None, reset=True)",
        "estimators/test_private_logistic.py",
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
        '                self.parts.append((_join(name, "label_mechanism"), labels))\n            elif',
        "                pass\n            elif",
        "estimators/test_discriminants.py",
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
    Mutation(
        "estimators/_composition.py", "parts=unbounded + steps", "parts=unbounded", "mechanisms/test_guarantee_steps.py"
    ),
    Mutation(
        "estimators/_guarantee_mixin.py",
        'return "no privacy guarantee: changed after fit"',
        "return estimator._guarantee_at_fit[0].headline()",
        "estimators/test_notebook.py",
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
        "estimators/_schema.py",
        "if of_numbers or of_dates:",
        "if of_dates:",
        "estimators/test_table.py",
    ),
    Mutation("estimators/_schema.py", "if of_numbers or of_dates:", "if of_numbers:", "test_newcomers.py"),
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
    Mutation(
        "estimators/_query_results.py",
        "if n_people and not n_answers:",
        "if False:",
        "estimators/test_query_results.py",
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
        "estimators/_table.py",
        'if self.sparse_output and self.encoding == "onehot" and container != "default":',
        "if False:",
        "estimators/test_out_of_domain.py",
    ),
    *(
        Mutation(path, old, new, "estimators/test_table_mechanisms.py")
        for path, old, new in (
            (
                "estimators/_table_encoding.py",
                "unbiased_share(encoded[:, end - size : end], p, q)",
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
        "estimators/_out_of_core.py",
        "estimator.mechanism_.domain.clip(rows)",
        "pass",
        "estimators/test_table_mechanisms.py",
    ),
    Mutation("_reading.py", "bool | np.timedelta64)", "bool)", "test_reading.py"),
    Mutation("_reading.py", "if len(kinds & {int, float, bool}) > 1 or not", "if not", "test_reading.py"),
    Mutation("_reading.py", "        if self.text and key[0] is str", "        if key[0] is str", "test_reading.py"),
    Mutation("_reading.py", "if key[0] in self._kinds else Unread", "if True else Unread", "test_reading.py"),
    Mutation("_reading.py", "or self._written(value) in self._codes", "or False", "test_reading.py"),
    Mutation("_value_labels.py", "for write in (str, repr):", "for write in (str, str):", "test_reading.py"),
]
