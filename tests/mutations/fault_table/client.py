"""Faults of client."""

from mutations.fault_table._mutation import HITTERS, Mutation

__all__ = ["MUTATIONS"]

MUTATIONS = [
    Mutation(
        "client/_policy.py",
        '        if claims != [_claimed(one) for one in (*own._document["fields"], own._document)]:',
        "        if claims[:-1] != [repr(one.epsilon) for one in fields]:",
        "client/test_policy.py",
    ),
    Mutation(
        "client/_policy.py",
        '        if digest(given) != given["sha256"]:',
        "        if not digest(given):",
        "client/test_policy.py",
    ),
    Mutation(
        "client/_policy.py",
        "        if self._expiry is not None and datetime.now(UTC) >= self._expiry:",
        "        if self._expiry is not None and datetime.now(UTC) < self._expiry:",
        "client/test_policy.py",
    ),
    Mutation(
        "client/_ledger.py",
        "return math.ceil(Fraction(float(epsilon)) * _UNITS)",
        "return math.floor(Fraction(float(epsilon)) * _UNITS)",
        "client/test_policy.py",
    ),
    Mutation(
        "client/_ledger.py",
        "        if units and _total(connection) + units > limit:",
        "        if units > limit:",
        "client/test_policy.py",
    ),
    Mutation("client/_fields.py", "self._missing if found is", "self._unknown if found is", "client/test_policy.py"),
    Mutation("client/_fields.py", "[] if unknown else [Unread.UNKNOWN]", "[]", "cli/test_policies.py"),
    Mutation(
        "client/_schema.py",
        ", object_pairs_hook=each_once, parse_float",
        ", parse_float",
        "client/test_policy.py",
    ),
    Mutation(
        "client/_reports.py",
        "    if number:\n",
        "    if number < 0:\n",
        "client/test_policy.py",
    ),
    Mutation(
        "client/_fields.py",
        "return self._codes[value_key(self.unknown)]",
        "return 0",
        "client/test_policy.py",
    ),
    Mutation(
        "client/_schema.py",
        're.fullmatch(schema["pattern"].strip("^$"), value)',
        're.match(schema["pattern"].strip("^$"), value)',
        "client/test_policy.py",
    ),
    Mutation(
        "client/_policy.py",
        "            ledger.charge(self.sha256, self.epsilon)\n",
        "            secure_words().__next__()\n            ledger.charge(self.sha256, self.epsilon)\n",
        "client/test_policy.py",
    ),
    Mutation(
        "client/_memo.py",
        "(_VERSION, meaning, law, person, packed)",
        "(_VERSION, law, person, packed)",
        "client/test_memo.py",
    ),
    Mutation(
        "client/_memo.py",
        "(_VERSION, meaning, law, person, packed)",
        "(_VERSION, meaning, person, packed)",
        "client/test_memo.py",
    ),
    Mutation(
        "client/_memo.py",
        "(_VERSION, meaning, law, person, packed)",
        "(_VERSION, meaning, law, packed)",
        "client/test_memo.py",
    ),
    Mutation(
        "client/_memo.py",
        "(_VERSION, meaning, law, person, packed)",
        "(_VERSION, meaning, law, person)",
        "client/test_memo.py",
    ),
    Mutation(
        "client/_memo.py", "_VERSION, policy, person, *about)", "_VERSION, person, *about)", "client/test_memo.py"
    ),
    Mutation(
        "client/_memo.py", "_VERSION, policy, person, *about)", "_VERSION, policy, person)", "client/test_memo.py"
    ),
    Mutation("client/_memo.py", "* steps + above)", "* steps + 0.5)", "client/test_memo.py"),
    Mutation("client/_memo.py", "        block += 1\n", "", "client/test_memo.py"),
    Mutation(
        "client/_policy.py",
        "            ledger.charge_once(self.sha256, kept.charges)\n",
        "            pass\n",
        "client/test_memo.py",
    ),
    Mutation(
        "client/_ledger.py",
        "if units and _total(connection)",
        "if _total(connection)",
        "client/test_memo.py",
    ),
    Mutation(
        "client/_ledger.py",
        "sum(_units(charges[tag]) for tag in new)",
        "sum(_units(charges[tag]) for tag in new[:1])",
        "client/test_memo.py",
    ),
    Mutation("client/_ledger.py", ".fetchone() is None]", ".fetchone() is not None]", "client/test_memo.py"),
    # Heavy hitters.
    Mutation("client/_prefixes.py", "[:length] if is_code else None", "[:length]", HITTERS),
    Mutation("client/_prefixes.py", "len(text) == length if self.fixed", "True if self.fixed", HITTERS),
    Mutation("client/_prefixes.py", "if not are_all or not all(", "if not all(", HITTERS),
    Mutation("client/_prefixes.py", "if any(not one < two for", "if any(False for", HITTERS),
    Mutation("client/_prefixes.py", " or field.unknown is not None:", ":", HITTERS),
    Mutation("client/_prefixes.py", 'if self.policy.memo != "fresh":', "if False:", HITTERS),
    Mutation("client/_prefixes.py", "ledger=ledger)", "ledger=None)", HITTERS),
    Mutation(
        "client/_ledger.py", "self.path = os.path.abspath(path)", "self.path = str(path)", "client/test_crashes.py"
    ),
    Mutation(
        "client/_ledger.py",
        "        except (sqlite3.Error, OSError) as error:",
        "        except sqlite3.IntegrityError as error:",
        "client/test_crashes.py",
    ),
    Mutation("client/_ledger.py", "            _create(self.path)\n", "", "client/test_crashes.py"),
    Mutation("client/_columns.py", "abs(end) <= _MOST", "True", "client/test_policy.py"),
    Mutation(
        "_reading.py",
        "([0-9]{2})(?:[T ]|\\Z)",
        "([0-9]{2})",
        "collection/test_policy.py",
    ),
    Mutation(
        "client/_policy.py",
        "        if not all(field.is_answer(answer) for field, answer in zip(self.fields, answers, strict=True)):",
        "        if not answers:",
        "client/test_policy.py",
    ),
    Mutation(
        "client/_policy.py",
        "        encoded = [self._encode(record) for record in records]\n        words",
        "        encoded = (self._encode(record) for record in records)\n        words",
        "collection/test_batches.py",
    ),
    Mutation(
        "client/_memo.py",
        "(*of_person, _whole(permanent), policy, _wave(wave))",
        "(*of_person, _whole(permanent), policy)",
        "client/test_waves.py",
    ),
    Mutation(
        "client/_memo.py",
        "(*of_person, _whole(permanent), policy, _wave(wave))",
        "(*of_person, policy, _wave(wave))",
        "client/test_waves.py",
    ),
    Mutation(
        "client/_memo.py",
        "(*of_person, _whole(permanent), policy, _wave(wave))",
        "(*of_person, _whole(permanent), _wave(wave))",
        "client/test_waves.py",
    ),
    Mutation(
        "client/_memo.py",
        "about = self._about(_whole(seen))",
        "about = self._about(_whole(seen) + wave.encode())",
        "client/test_waves.py",
    ),
    Mutation(
        "client/_memo.py",
        '"skldp choice", *of_person)',
        '"skldp choice", *of_person, wave.encode())',
        "client/test_waves.py",
    ),
    Mutation(
        "client/_memo.py",
        "about = [_wave(wave)] if wave else values",
        "about = values",
        "client/test_waves.py",
    ),
    Mutation(
        "client/_memo.py",
        "about = [_wave(wave)] if wave else values",
        "about = [_wave(wave), *values] if wave else values",
        "client/test_waves.py",
    ),
    Mutation(
        "client/_policy.py",
        "return ledger.keep_wave(self.sha256, _wave_digest(self.sha256, whose, wave), kept.charges, report)",
        "ledger.charge_once(self.sha256, kept.charges)",
        "client/test_waves.py",
    ),
    Mutation("client/_ledger.py", "            if kept is not None:", "            if False:", "client/test_waves.py"),
    Mutation(
        "client/_ledger.py",
        '                connection.execute("INSERT INTO waves VALUES (?, NULL)", (wave,))\n',
        "",
        "client/test_waves.py",
    ),
    Mutation("client/_memo.py", "*about, column.name.encode())", "*about)", "client/test_waves.py"),
    Mutation("client/_memo.py", "field.lifetime_epsilon)", "field.epsilon)", "client/test_waves.py"),
    Mutation(
        "client/_memo.py",
        "of_person = (_VERSION, self.kept.meaning, self.kept.law, self.person)",
        "of_person = (_VERSION, self.kept.law, self.person)",
        "client/test_waves.py",
    ),
    Mutation(
        "client/_memo.py",
        "of_person = (_VERSION, self.kept.meaning, self.kept.law, self.person)",
        "of_person = (_VERSION, self.kept.meaning, self.person)",
        "client/test_waves.py",
    ),
    Mutation(
        "client/_memo.py",
        "of_person = (_VERSION, self.kept.meaning, self.kept.law, self.person)",
        "of_person = (_VERSION, self.kept.meaning, self.kept.law)",
        "client/test_waves.py",
    ),
    Mutation(
        "client/_policy.py",
        'if self.memo == "fresh" and self.has_waves:',
        'if self.memo == "fresh" and not self.fields:',
        "client/test_waves.py",
    ),
    Mutation("client/_policy.py", "(wave is None) is self.has_waves or", "self.has_waves and", "client/test_waves.py"),
    Mutation(
        "client/_policy.py",
        'return given["epsilon"], given.get("lifetime_epsilon")',
        'return given["epsilon"], None',
        "client/test_waves.py",
    ),
    Mutation(
        "client/_policy.py",
        "sum(one.n_answers.bit_length() for one in self.fields) > _MOST_BITS",
        "not self.fields",
        "client/test_waves.py",
    ),
    Mutation(
        "client/_fields.py",
        "return self.steps is None and not all(column.whole for column in self.columns)",
        "return False",
        "client/test_waves.py",
    ),
]
