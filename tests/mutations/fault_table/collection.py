"""Faults of collection."""

from mutations.fault_table._mutation import COLLECTOR, HITTERS, Mutation

__all__ = ["MUTATIONS"]

MUTATIONS = [
    Mutation(
        "collection/_policy.py",
        "replace(field, unit=None, missing=None, steps=None)",
        "replace(field, unit=None, missing=None)",
        "collection/test_policy.py",
    ),
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
    Mutation(
        "collection/_policy.py",
        "    if not math.isfinite(part.fitted.privacy_guarantee_.epsilon):",
        "    if part.fitted.privacy_guarantee_.epsilon < 0:",
        "collection/test_policy.py",
    ),
    Mutation(
        "collection/_policy.py",
        "if list(map(_of_estimator, again)) != list(map(_of_estimator, fields)):",
        "if len(again) != len(fields):",
        "collection/test_policy.py",
    ),
    Mutation("collection/_columns.py", "columns.take(order[starts])", "columns.take(order[starts - 1])", COLLECTOR),
    Mutation(
        "collection/_columns.py",
        "(high[1:] != high[:-1]) | (low[1:] != low[:-1])",
        "(high[1:] != high[:-1]) & (low[1:] != low[:-1])",
        COLLECTOR,
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
    Mutation("client/_policy.py", "map(person_bytes, people)", "[b''] * len(people)", "collection/test_batches.py"),
    Mutation("collection/_report_files.py", '[report or b"" for', "[report for", "collection/test_batches.py"),
    Mutation(
        "client/_columns.py",
        "rule, Unread.UNREADABLE, first_row",
        "rule, first_row",
        "cli/test_policies.py",
    ),
    Mutation("cli/_releases.py", '"first_row": n + 1', '"first_row": 1', "cli/test_policies.py"),
    Mutation(
        "collection/_batches.py",
        "if kept is not isinstance(secret, ReleaseKey) or",
        "if",
        "collection/test_batches.py",
    ),
    Mutation(
        "collection/_report_files.py",
        "own = given.startswith(header(bytes.fromhex(policy.sha256)))",
        "own = True",
        COLLECTOR,
    ),
    Mutation(
        "collection/_report_files.py", "following = held.find(start, place + skipped)", "following = -1", COLLECTOR
    ),
    Mutation(
        "collection/_policy.py", "except (ArithmeticError, KeyError):", "except KeyError:", "collection/test_policy.py"
    ),
    Mutation(
        "collection/_page.py",
        "for one in collector._group_means(field)]",
        "for one in map(collector.mean, field.names)]",
        COLLECTOR,
    ),
    Mutation("learning/_answer_scores.py", "sums += count * values, count *", "sums += values, count *", COLLECTOR),
    # Hostile files: memory and time are bounded by the size of the file.
    Mutation(
        "collection/_report_files.py",
        "skipped = 1 if n_failed * size <=",
        "skipped = 1 if 0 <=",
        "collection/test_hostile_files.py",
    ),
    Mutation(
        "collection/_report_files.py",
        "return not place(batch +",
        "return True or place(batch +",
        "collection/test_hostile_files.py",
    ),
    Mutation(
        "collection/_report_files.py",
        "message, version)[0] != _V5",
        "message, version)[0] < 0",
        "collection/test_hostile_files.py",
    ),
    Mutation(
        "collection/_report_files.py", "batch.nbytes > message.body.size or", "", "collection/test_hostile_files.py"
    ),
    Mutation(
        "collection/_report_files.py", " or batch.num_rows > message.body.size", "", "collection/test_hostile_files.py"
    ),
    Mutation("collection/_report_files.py", "if n_rows > most:", "if n_rows < 0:", "collection/test_hostile_files.py"),
    Mutation(
        "collection/_report_files.py",
        "batch_size=_ROWS, columns=names",
        "batch_size=_ROWS",
        "collection/test_hostile_files.py",
    ),
    Mutation(
        "collection/_report_files.py",
        "if file.read(len(_ARROW)) != _ARROW:",
        "if False:",
        "collection/test_hostile_files.py",
    ),
    Mutation(
        "collection/_report_store.py",
        "if sum(more) > max(known, _WAITING):",
        "if False:",
        "collection/test_hostile_files.py",
    ),
    Mutation(
        "collection/_arrow.py", "schema.field(_REPORT).type not in layouts", "False", "collection/test_hostile_files.py"
    ),
    Mutation(
        "collection/_report_store.py",
        "        self._put_away()\n        self._foreign",
        "        self._foreign",
        COLLECTOR,
    ),
    Mutation("study/_tables.py", ', "skip_blank_lines": len(names) > 1}', "}", "study/test_tables.py"),
    Mutation(
        "_reading.py",
        "if type(values) is np.ndarray",
        "if isinstance(values, np.ndarray)",
        "client/test_every_record.py",
    ),
    Mutation(
        "client/_fields.py", "found is Unread.MISSING else self._unknown", "True else 0", "client/test_vectors.py"
    ),
    Mutation(
        "collection/_report_store.py",
        "return ReportCounts(n, self._foreign, self._broken, self._read - n)",
        "return ReportCounts(self._read, self._foreign, self._broken, 0)",
        COLLECTOR,
    ),
    Mutation(
        "collection/_report_store.py",
        "if any(one.policy.sha256 != self.policy.sha256 for one in every):",
        "if False:",
        COLLECTOR,
    ),
    Mutation("collection/_report_files.py", "OSError, pa.ArrowException", "OSError", COLLECTOR),
    Mutation("collection/_batches.py", "if policy.has_waves:", "if False:", "collection/test_batches.py"),
    Mutation("collection/_collector.py", "if len(set(names)) < len(names):", "if False:", COLLECTOR),
    Mutation(
        "collection/_heavy_hitters.py", "self.false_positives / (scores.n_parts - 1)", "self.false_positives", HITTERS
    ),
    Mutation("collection/_heavy_hitters.py", "        check_epsilon(epsilon)\n", "", HITTERS),
    Mutation("collection/_heavy_hitters.py", "scores.q)) + 1", "scores.q)) + 2", HITTERS),
    Mutation("collection/_heavy_hitters.py", "1 - (1 - level) / (len(field.values) - 1)", "level", HITTERS),
    Mutation(
        "collection/_heavy_hitters.py",
        "self.rounds = (*self.rounds, Round(length, int(n_reports), tuple(kept)))",
        "self.rounds = (*self.rounds, Round(length, int(n_reports), tuple(kept)))\n        self._begin()",
        HITTERS,
    ),
    Mutation("collection/_heavy_hitters.py", "AttributeError, OverflowError)", "AttributeError)", HITTERS),
    Mutation("collection/_heavy_hitters.py", "or kept != [one for one in candidates if one in chosen]", "", HITTERS),
    Mutation("collection/_heavy_hitters.py", "if own.to_json() != canonical_text(given):", "if False:", HITTERS),
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
]
