"""Faults of ledgers."""

from mutations.fault_table._mutation import CHARGED, DRIVER, ERASED, PARTS, Mutation

__all__ = ["MUTATIONS"]

FILES = (
    "accounting/test_ledger_file.py accounting/test_ledger_damage.py accounting/test_ledger_crashes.py "
    "accounting/test_ledger.py accounting/test_ledger_versions.py"
)
CALLS = "accounting/test_ledger_calls.py"
FEATURES = "accounting/test_features.py"
AGAIN = "accounting/test_releases_made_again.py"
HOSTS = "accounting/test_ledger_postgres.py"

MUTATIONS = [
    Mutation(
        "accounting/_ledger/verification.py",
        "partial(is_established, rule, query), answers)",
        "lambda answers: rule.table_for(query) is not None, answers)",
        "accounting/test_certified.py",
    ),
    Mutation(
        "accounting/_ledger/established.py",
        'rule.name != "simplified" and all(',
        'rule.name != "simplified" and any(',
        "accounting/test_certified.py",
    ),
    Mutation(
        "accounting/_ledger/established.py",
        "if charges <= budget:",
        "if charges <= 2 * budget:",
        "accounting/test_certified.py",
    ),
    Mutation(
        "accounting/_ledger/established.py", "room = budget - _cost_of_releases(released)", "room = budget", CHARGED
    ),
    Mutation(
        "accounting/_ledger/established.py",
        "(budget - rho) ** 2 >= 4 * rho * inverse",
        "(budget - rho) ** 2 >= 0",
        CHARGED,
    ),
    Mutation(
        "accounting/_ledger/privacy_ledger.py",
        "        if isinstance(checked_query(query), ReleaseQuery):\n",
        "        if checked_query(query) is None:\n",
        CHARGED,
    ),
    Mutation("accounting/_ledger/releasing.py", "        mechanism.encode(rows)\n", "", CHARGED),
    Mutation("accounting/_ledger/releasing.py", "repeat=True,", "repeat=False,", CHARGED),
    Mutation(
        "accounting/_ledger/releasing.py",
        "if not math.isfinite(query.epsilon) and self._rule.zcdp_budget is None:",
        "if False:",
        CHARGED,
    ),
    Mutation(
        "accounting/_ledger/releasing.py",
        "any(one.n_classes != query.n_classes for one in known)",
        "not known",
        CHARGED,
    ),
    Mutation(
        "accounting/_ledger/settings.py", 'if (delta is not None) != (rule == "approximate"):', "if False:", CHARGED
    ),
    Mutation(
        "accounting/_ledger/book.py",
        "query.epsilon if by_table else np.inf",
        "0.0 if by_table else np.inf",
        "accounting/test_ledger_memory.py",
    ),
    Mutation(
        "accounting/_ledger/book.py",
        "query.epsilon if by_table else np.inf",
        "query.epsilon",
        "accounting/test_ledger_memory.py",
    ),
    Mutation(
        "accounting/_ledger/plan.py",
        "+ query.epsilon + 3 * MARGIN <= rule.epsilon",
        "+ 3 * MARGIN <= rule.epsilon",
        "accounting/test_ledger_memory.py",
    ),
    Mutation(
        "accounting/_ledger/book.py",
        "column[numbers] = outputs",
        "column[numbers] = 0",
        "accounting/test_ledger_memory.py",
    ),
    # A ledger's file, its lock and its chain.
    Mutation(
        "accounting/_ledger/sqlite_store.py",
        "if self._memory is not None and self._process != os.getpid():",
        "if False:",
        FILES,
    ),
    Mutation(
        "accounting/_ledger/sqlite_store.py",
        "                    if os.getpid() != process:\n",
        "                    if False:\n",
        FILES,
    ),
    Mutation(
        "accounting/_ledger/store.py",
        "for head in (self._head, remembered):",
        "for head in (self._head,):",
        FILES,
    ),
    Mutation(
        "accounting/_ledger/store.py",
        "for head in (self._head, remembered):",
        "for head in (remembered,):",
        FILES,
        survives="the companion remembers as much as the process does, and more",
    ),
    Mutation("accounting/_ledger/sqlite_store.py", "if status.st_nlink != 1:", "if False:", FILES),
    Mutation(
        "accounting/_ledger/store.py",
        'if any(known not in (None, settings["token"])',
        'if any(known in () and known not in (None, settings["token"])',
        FILES,
    ),
    Mutation("accounting/_ledger/sqlite_store.py", 'if journal != "delete":', "if False:", FILES),
    Mutation(
        "accounting/_ledger/sqlite_store.py",
        "            keep_forever(self._connection)\n",
        "            pass\n",
        FILES,
    ),
    Mutation("accounting/_ledger/store.py", "        gc.freeze()\n", "", FILES),
    Mutation(
        "accounting/_ledger/store.py",
        "for store in list(_STORES) if store.lock.acquire(timeout=BUSY_SECONDS))",
        "for store in ())",
        FILES,
    ),
    Mutation("accounting/_ledger/sqlite_store.py", "PRAGMA synchronous = EXTRA", "PRAGMA synchronous = OFF", FILES),
    Mutation(
        "accounting/_ledger/migration.py", 'for change in ("update", "delete")', 'for change in ("update",)', FILES
    ),
    Mutation(
        "accounting/_ledger/companion.py", "(fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)", "fcntl.LOCK_SH", FILES
    ),
    Mutation("accounting/_ledger/companion.py", "        if prove:\n", "        if False:\n", FILES),
    Mutation(
        "accounting/_ledger/companion.py",
        "if os.path.samestat(os.fstat(descriptor), os.lstat(companion_of(path))):",
        "if True:",
        FILES,
    ),
    Mutation(
        "accounting/_ledger/companion.py", "        os.close(_DESCRIPTORS.pop())", "        _DESCRIPTORS.pop()", FILES
    ),
    Mutation(
        "accounting/_ledger/companion.py",
        'exclusive = write or os.path.exists(f"{path}-journal")',
        "exclusive = write",
        FILES,
        survives="it is asked once more when the lock is held, and the lock made exclusive then",
    ),
    Mutation(
        "accounting/_ledger/records.py",
        "json.dumps([previous, list(entry), list(identities)])",
        "json.dumps([EMPTY.chain, list(entry), list(identities)])",
        FILES,
    ),
    Mutation(
        "accounting/_ledger/records.py",
        "json.dumps([previous, list(entry), list(identities)])",
        "json.dumps([previous, list(entry)])",
        FILES,
    ),
    Mutation(
        "accounting/_ledger/records.py",
        "json.dumps([previous, list(entry), list(identities)])",
        "json.dumps([previous, list(identities)])",
        FILES,
    ),
    Mutation(
        "accounting/_ledger/records.py",
        "np.column_stack([numbers, outputs])",
        "np.column_stack([numbers, numbers])",
        FILES,
    ),
    Mutation("accounting/_ledger/schema.py", "json.dumps([token, name, value])", "json.dumps([name, value])", FILES),
    Mutation(
        "accounting/_ledger/book.py",
        " or not (untold or digest in (None, told.value))",
        "",
        FILES,
    ),
    Mutation(
        "accounting/_ledger/migration.py",
        "f'WHEN NOT EXISTS (",
        "f'WHEN EXISTS (",
        FILES,
    ),
    Mutation("accounting/_ledger/sqlite_store.py", "if version in MIGRATED and opening:", "if False:", FILES),
    # Calls that are made again, erased answers, and many hosts.
    Mutation("accounting/_ledger/privacy_ledger.py", "if before is not None:", "if False:", CALLS),
    Mutation("accounting/_ledger/privacy_ledger.py", "if request != call.request:", "if False:", CALLS),
    Mutation("accounting/_ledger/privacy_ledger.py", "np.where(fresh, last, earlier)", "last", CALLS),
    Mutation("accounting/_ledger/plan.py", "hashlib.sha256(own).hexdigest()", "own.decode()", CALLS),
    Mutation("accounting/_ledger/erasures.py", "return rows is None or _hash(rows) == request", "return True", ERASED),
    Mutation("accounting/_ledger/erasures.py", "    connection.executemany(_ERASE_ANSWER, rows)\n", "", ERASED),
    Mutation("accounting/_ledger/book.py", "erasures.last > self.release", "False", ERASED),
    Mutation("accounting/_ledger/established.py", "max(found) - min(found)", "Fraction(0)", PARTS),
    Mutation("accounting/_ledger/established.py", "(Fraction(1, 10**40) if apart else 0)", "1", PARTS),
    Mutation("accounting/_ledger/book.py", "tokens.setdefault(one, os.urandom(16))", "bytes(16)", PARTS),
    Mutation("accounting/_ledger/feature_question.py", "self.region.move(records)", "records", FEATURES),
    Mutation("accounting/_ledger/feature_question.py", "count(part) != 1", "count(part) < 1", FEATURES),
    Mutation("accounting/_ledger/established.py", "codes = [*old, new] if", "codes = [new] if", PARTS),
    Mutation(
        "accounting/_ledger/feature_question.py",
        "if region.in_block[column] or len(region.limits):",
        "if False:",
        FEATURES,
    ),
    Mutation(
        "accounting/_ledger/feature_question.py",
        '"linear" if inside else "truncated"',
        '"linear"',
        FEATURES,
        survives="a prediction outside of the output bounds is clipped whatever the kind, and certified so",
    ),
    Mutation("accounting/_ledger/feature_question.py", "law.exact_epsilon)", "2 * law.exact_epsilon)", FEATURES),
    # Released rows that are handed out again.
    Mutation("accounting/_ledger/erasures.py", "    connection.executemany(_ERASE_KEPT, rows)\n", "", AGAIN),
    Mutation("accounting/_ledger/plan.py", "*([] if contents is None else [contents])", "", AGAIN),
    Mutation("accounting/_ledger/releasing.py", "[parameters_of(mechanism), part,", "[part,", AGAIN),
    Mutation("accounting/_ledger/releasing.py", "released.dtype.str, people]", "released.dtype.str]", AGAIN),
    Mutation("accounting/_ledger/releasing.py", "idempotency_key=key,", "idempotency_key=None,", AGAIN),
    Mutation("accounting/_ledger/kept_rows.py", 'json.dumps(self.people[position]).encode("ascii")', 'b""', AGAIN),
    Mutation("accounting/_ledger/kept_rows.py", "secrets.token_bytes(_NONCE_BYTES)", "bytes(_NONCE_BYTES)", AGAIN),
    Mutation(
        "accounting/_ledger/postgres_schema.py",
        "CASE WHEN {_may_see(owner)} THEN t.sealed",
        "CASE WHEN true THEN t.sealed",
        AGAIN,
        needs=DRIVER,
    ),
    Mutation("accounting/_ledger/eraser.py", "certified if certified < composed else None", "certified", ERASED),
    Mutation("accounting/_ledger/plan.py", "mark, digest, key is not None, kept)", "mark, digest, False, kept)", CALLS),
    Mutation(
        "accounting/_ledger/eraser.py",
        "query = ReleaseQuery.erasure(queries, loss)",
        "query = ReleaseQuery.erasure(queries[:1], loss)",
        ERASED,
    ),
    Mutation(
        "accounting/_ledger/store.py",
        "self._check_published, Head(int(match[1]), match[2])",
        "self._check_published, Head(0, match[2])",
        ERASED,
    ),
    Mutation("accounting/_ledger/store.py", 'match[1] == "0" and match[2] != EMPTY.chain', "False", ERASED),
    Mutation("accounting/_ledger/sqlite_store.py", "PRAGMA secure_delete = ON", "PRAGMA secure_delete = OFF", ERASED),
    Mutation("accounting/_ledger/book.py", "number + shift * (output < 0)", "number", ERASED, needs=DRIVER),
    Mutation(
        "accounting/_ledger/postgres_schema.py",
        "CASE WHEN {may_see} THEN t.output",
        "CASE WHEN true THEN t.output",
        ERASED,
        needs=DRIVER,
    ),
    Mutation(
        "accounting/_ledger/postgres_schema.py",
        "CASE WHEN {may_see} THEN t.salt",
        "CASE WHEN true THEN t.salt",
        ERASED,
        needs=DRIVER,
    ),
    Mutation(
        "accounting/_ledger/postgres_schema.py",
        "IF NEW.tenant <> current_user THEN",
        "IF false THEN",
        ERASED,
        needs=DRIVER,
    ),
    Mutation(
        "accounting/_ledger/postgres_schema.py",
        'f"GRANT INSERT ON ',
        'f"GRANT INSERT, UPDATE ON ',
        HOSTS,
        needs=DRIVER,
    ),
    Mutation(
        "accounting/_ledger/postgres_schema.py",
        '_CHANGES = ("update", "delete", "truncate")',
        '_CHANGES = ("update", "delete")',
        HOSTS,
        needs=DRIVER,
    ),
    Mutation(
        "accounting/_ledger/records.py",
        "r.query = :query AND r.tenant = :tenant",
        "r.query = :query AND :tenant = :tenant",
        ERASED,
        needs=DRIVER,
    ),
    Mutation(
        "accounting/_ledger/postgres_store.py",
        '"SERIALIZABLE" if write else',
        '"READ COMMITTED" if write else',
        HOSTS,
        needs=DRIVER,
    ),
    Mutation(
        "accounting/_ledger/postgres_store.py", "WHEN 'off' THEN 'on'", "WHEN 'off' THEN 'off'", HOSTS, needs=DRIVER
    ),
    Mutation("accounting/_ledger/postgres_store.py", 'if fsync != "on":', "if False:", HOSTS, needs=DRIVER),
    Mutation(
        "accounting/_ledger/book.py",
        "self._spent[numbers, 2:]",
        "self._spent[numbers, :2]",
        "accounting/test_deltas.py",
    ),
    Mutation(
        "accounting/_ledger/reader.py", "ledger._store.check_head(head)", "pass", "accounting/test_ledger_erasing.py"
    ),
    # A connection that is lost while somebody reads is no answer, and no fault of the record.
    Mutation(
        "accounting/_ledger/store.py",
        "ledger._store.repeated(partial(read, ledger, *arguments, **options))",
        "read(ledger, *arguments, **options)",
        HOSTS,
        needs=DRIVER,
    ),
    Mutation(
        "accounting/_ledger/postgres_store.py",
        "until = until or time.monotonic() + RECONNECT_SECONDS",
        "until = until or 1.0",
        HOSTS,
        needs=DRIVER,
    ),
    Mutation(
        "accounting/_ledger/reader.py", '(f"{book.release} {book.chain}", len(losses)', "(self.head, len(losses)", FILES
    ),
    Mutation(
        "accounting/_ledger/verification.py",
        "    except ConflictError:\n",
        "    except ZeroDivisionError:\n",
        HOSTS,
        needs=DRIVER,
    ),
    Mutation(
        "accounting/_ledger/reader.py",
        'if (self.delta is None) == (self.rule == "approximate"):',
        "if False:",
        HOSTS,
        needs=DRIVER,
    ),
    Mutation(
        "accounting/_ledger/postgres_store.py",
        "is undone.\n        session.rollback()",
        "is undone.\n        session.commit()",
        HOSTS,
        needs=DRIVER,
    ),
    Mutation("accounting/_ledger/postgres_store.py", ".splitlines()[0]", "", HOSTS, needs=DRIVER),
    Mutation(
        "accounting/_ledger/postgres_store.py",
        "if os.getpid() != self._process:",
        "if False:",
        "accounting/test_ledger_file.py",
        needs=DRIVER,
    ),
    Mutation(
        "accounting/_ledger/postgres_store.py",
        "if state in _RETRIED or (lost and self._was_open):",
        "if False:",
        HOSTS,
        needs=DRIVER,
    ),
    Mutation(
        "accounting/_ledger/dry_run.py",
        "                if unknown:",
        "                if False:",
        "accounting/test_dry_run.py",
    ),
    Mutation(
        "accounting/_ledger/dry_run.py",
        "np.where(accepted & ~recorded, worst, now)",
        "now",
        "accounting/test_dry_run.py",
    ),
    Mutation(
        "accounting/_ledger/dry_run.py",
        "recorded = np.zeros(len(people), dtype=bool) if repeat else handed >= 0",
        "recorded = handed >= 0",
        "accounting/test_dry_run.py",
    ),
    Mutation(
        "accounting/_ledger/dry_run.py",
        "output >= 0 and not gone",
        "output >= 0",
        "accounting/test_dry_run.py",
    ),
]
