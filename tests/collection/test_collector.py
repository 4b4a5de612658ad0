"""The collector: each report counts once, nobody else's counts, and estimates are those of plain formulas."""

import copy
import datetime
import itertools
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
from laws import hadamard, hashing
from scipy.stats import binomtest, t

from skldp import Collector
from skldp.client import Field, Policy
from skldp.collection._report_files import read_batch
from skldp.collection._report_tables import batch_of_reports
from skldp.laws._numbers import SampledLaw
from skldp.mechanisms import Column, Piecewise, RandomizedResponse, estimate_frequencies
from skldp.mechanisms.categorical._one_hot import SubsetSelection, UnaryEncoding
from skldp.mechanisms.numeric._unit_mechanisms import Duchi, SquareWave

T = float(t.ppf(0.975, 599))
CITIES = ("Bonn", "Ulm", None)
POLICY = Policy(
    "a <test>",
    (
        Field("age", Column(0, 100, unit="years"), SquareWave(2.0).integer_law),
        Field("pay", Column(0, 10), Piecewise(2.0).integer_law),
        Field("city", Column(values=CITIES), RandomizedResponse(2.0, 3).integer_law),
        Field("shop", Column(values=tuple(range(70))), UnaryEncoding(2.0, 70).integer_law),
        Field("kids", Column(0, 5, kind="integer"), Piecewise(3.0).integer_law),
        Field("yes", Column(0, 1, kind="integer"), Duchi(1.0).integer_law),
    ),
)
OTHER = Policy("another", POLICY.fields)


def report(rng, policy=POLICY):
    """A report whose noise is that of a generator."""
    record = {
        "age": 100 * rng.beta(2, 4),
        "pay": 10 * rng.random(),
        "city": CITIES[rng.choice(3, p=[0.6, 0.3, 0.1])],
        "shop": min(69, int(rng.geometric(0.4))),
        "kids": int(rng.choice(6)),
        "yes": int(rng.random() < 0.3),
    }
    # More words than any report takes.
    return policy.vector(record, rng.bytes(8 * 200))


@pytest.fixture(scope="module")
def reports():
    rng = np.random.default_rng(5)
    return [report(rng) for _ in range(600)]


@pytest.fixture(scope="module")
def collector(reports):
    return collect(reports)


def collect(some):
    made = Collector(POLICY)
    for one in some:
        assert made.add(one)
    return made


def everything(made):
    """All estimates, to the bit."""
    found = (
        made.mean("age"),
        made.mean("pay", by="city", where={"age": (20, 60)}),
        made.variance("pay"),
        made.frequencies("city", consistent="likelihood"),
        made.frequencies("shop", consistent="project"),
        made.histogram("age"),
        made.quantiles("age"),
    )
    return [
        (one.values.tobytes(), one.low.tobytes(), one.high.tobytes(), one.standard_errors.tobytes()) for one in found
    ]


# Reports in.


def test_nothing_but_reports_of_the_policy_counts(reports):
    made = Collector(POLICY)
    mine, theirs = reports[0], report(np.random.default_rng(1), OTHER)
    flipped = mine[:-1] + bytes([mine[-1] ^ 1])
    another_version = b"\2" + mine[1:]
    wrong = [theirs, another_version, b"", b"no report", flipped, mine[:-1], mine + b"\0"]
    assert [made.add(one) for one in wrong] == [False] * len(wrong)
    assert made.counts == (0, 4, 3, 0)
    assert made.add(bytearray(mine))
    assert made.counts == (1, 4, 3, 0)
    with pytest.raises(TypeError, match="A report must be bytes"):
        made.add("text")


def test_a_report_counts_once_by_its_id_and_equal_answers_are_two_people(reports):
    made = collect([reports[0], reports[1], reports[0], reports[0]])
    assert made.counts == (2, 0, 0, 2)
    # Of another id, and the same answers.
    twin = POLICY._pack(bytes(16), list(POLICY.read(reports[0]).answers.values()))
    made.add(twin)
    assert made.counts == (3, 0, 0, 2)
    made.add(reports[1])
    assert made.counts == (3, 0, 0, 3)


def test_of_reports_with_one_id_the_first_counts(reports):
    ids = bytes.fromhex(POLICY.read(reports[0]).report_id)
    forged = [POLICY._pack(ids, list(POLICY.read(one).answers.values())) for one in reports[:3]]
    for order in itertools.permutations(forged):
        assert collect([reports[9], *order]).to_frame().equals(collect([reports[9], order[0]]).to_frame())


def test_collectors_merge_to_the_bit_in_any_order(reports, collector):
    parts = [collect(reports[:200] + reports[:7]), collect(reports[350:]), collect(reports[200:400])]
    parts[1].add(b"no report")
    parts[2].add(reports[0][:-1])
    for first, *others in itertools.permutations(parts):
        merged = copy.deepcopy(first)
        # Called for its effect: a result that nobody uses would lose reports, and no one would see it.
        assert merged.merge(*others) is None
        assert merged.counts == (600, 1, 1, 57)
        assert everything(merged) == everything(collector)
    # The others stay as they were, and one by one is the same as at once.
    assert parts[0].counts == (200, 0, 0, 7)
    one_by_one = Collector(POLICY)
    for one in parts[::-1]:
        one_by_one.merge(one)
    one_by_one.merge()
    assert everything(pickle.loads(pickle.dumps(one_by_one))) == everything(collector)
    before = one_by_one.counts
    with pytest.raises(ValueError, match="must have the same policy"):
        one_by_one.merge(parts[0], Collector(OTHER))
    assert one_by_one.counts == before
    parts[0].add(reports[599])
    assert everything(one_by_one) == everything(collector)
    # Reports of no other collector would count as foreign, broken or repeated twice.
    for others in ((parts[1],), (parts[0], parts[0]), (parts[0], parts[1])):
        with pytest.raises(ValueError, match="each be given once"):
            parts[1].merge(*others)
    for other in (None, POLICY, [parts[0]]):
        with pytest.raises(TypeError, match=rf"only with collectors; got {type(other).__name__}\."):
            parts[1].merge(parts[0], other)
    assert parts[1].counts == (250, 1, 0, 0)


# Files.


@pytest.mark.parametrize("n_at_a_time", [1, 3, 1 << 16])
def test_files_of_reports(reports, collector, tmp_path, monkeypatch, n_at_a_time):
    monkeypatch.setattr("skldp.collection._report_files._BYTES", n_at_a_time)
    path = tmp_path / "reports.bin"
    path.write_bytes(b"".join(reports))
    made = Collector(POLICY)
    made.add_file(path)
    assert made.counts == (600, 0, 0, 0)
    assert everything(made) == everything(collector)
    # Truncated ones, another's, and rubbish in between: the next one is found again.
    theirs = report(np.random.default_rng(1), OTHER)
    cut, flipped = reports[0][:-5], reports[1][:-1] + bytes([reports[1][-1] ^ 1])
    parts = [cut, reports[2], flipped, flipped, reports[3], theirs, reports[4], b"rubbish", reports[5][:9], reports[6]]
    path.write_bytes(b"".join([*parts, reports[7][:20]]))
    made = Collector(POLICY)
    with pytest.warns(UserWarning, match=r"has broken reports \(5, beside 4 whole ones\): it was altered or cut off\."):
        made.add_file(path)
    assert made.counts == (4, 2, 5, 0)
    path.write_bytes(b"")
    with pytest.warns(UserWarning, match=r"reports\.bin holds no report of this policy; foreign"):
        made.add_file(path)
    assert made.counts == (4, 2, 5, 0)
    path.write_bytes(reports[0].hex().encode())
    with pytest.warns(UserWarning, match=r"reports\.bin holds no report of this policy; foreign"):
        made.add_file(path)
    assert made.counts == (4, 3, 5, 0)
    # Line ends between reports are no damage, other bytes are.
    path.write_bytes(b"\r\n".join(reports[:9]))
    made = Collector(POLICY)
    made.add_file(path)
    assert made.counts.accepted == 9
    path.write_bytes(b"rubbish" + b"\nmore".join(reports[:3]) + b"\n")
    with pytest.warns(UserWarning, match=r"has 15 bytes beside its 3 reports: it was altered, or is of another format"):
        made.add_file(path)
    assert made.counts.accepted + made.counts.doubled == 12


@pytest.mark.parametrize("form", ["file", "stream", "parquet"])
def test_files_of_arrow(reports, collector, tmp_path, form):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    batches = [batch_of_reports(reports[:250]), batch_of_reports(reports[250:])]
    path = str(tmp_path / "reports")
    if form == "parquet":
        pq.write_table(pa.Table.from_batches(batches), path)
    else:
        writer = pa.ipc.new_file if form == "file" else pa.ipc.new_stream
        with pa.OSFile(path, "wb") as file, writer(file, batches[0].schema) as out:
            for batch in batches:
                out.write_batch(batch)
    made = Collector(POLICY)
    made.add_file(path)
    assert made.counts == (600, 0, 0, 0)
    assert everything(made) == everything(collector)
    made.add_batch(batches[0])
    assert made.counts == (600, 0, 0, 250)
    # Another's rows are foreign, and a file that is cut off is broken.
    theirs = Collector(OTHER)
    with pytest.warns(UserWarning, match=r"reports holds no report of this policy; foreign reports or rows: 600\."):
        theirs.add_file(path)
    assert theirs.counts == (0, 600, 0, 0)
    content = (tmp_path / "reports").read_bytes()
    # Without its mark a file is read as bytes, and holds some reports by chance.
    (tmp_path / "unmarked").write_bytes(content[1:])
    with pytest.warns(UserWarning, match="bytes beside its|holds no report|broken reports"):
        Collector(POLICY).add_file(tmp_path / "unmarked")
    (tmp_path / "cut").write_bytes(content[: len(content) // 2])
    with pytest.warns(UserWarning, match="cut is damaged or cut off, and its rest was not read; got"):
        made.add_file(tmp_path / "cut")
    assert made.counts.accepted == 600
    assert made.counts.broken == 1


@pytest.mark.parametrize("name", ["ArrowInvalid", "ArrowMemoryError", "ArrowNotImplementedError", "ArrowTypeError"])
def test_a_file_that_pyarrow_cannot_go_on_with_counts_once_as_broken(reports, tmp_path, monkeypatch, name):
    pa = pytest.importorskip("pyarrow")

    def ended(policy, path):
        yield from read_batch(policy, batch_of_reports(reports[:5]))
        raise getattr(pa, name)("a length of petabytes")

    monkeypatch.setattr("skldp.collection._report_files._read_arrow", ended)
    (tmp_path / "reports").write_bytes(b"ARROW1")
    made = Collector(POLICY)
    with pytest.warns(UserWarning, match="rest was not read; got 5 reports of it"):
        made.add_file(tmp_path / "reports")
    assert made.counts == (5, 0, 1, 0)


def test_what_cannot_be_read_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        Collector(POLICY).add_file(tmp_path / "missing")
    with pytest.raises(TypeError, match=re.escape("Reports must be a pyarrow.RecordBatch")):
        Collector(POLICY).add_batch([1, 2])


# Estimates, against plain formulas over the frame of what was released.


def indicator(frame, value):
    """The scores of a city."""
    law = POLICY.fields[2].law
    p, q = 1 - 2 * law.other_count / 2**64, law.other_count / 2**64
    held = frame["city"].isna() if value is None else frame["city"] == value
    return (held.to_numpy() - q) / (p - q)


def end_of(error, distance, n=600):
    """How far the mean may be, by a search: few people at a distance have a share in the variance there."""
    tried = np.linspace(0, distance, 2_000_001)
    variance = n * error**2 + tried * max(distance - n * error**2 / distance, 0)
    return tried[np.flatnonzero(tried**2 <= T**2 * variance / n)[-1]]


def test_means_are_those_of_what_was_released(collector):
    frame = collector.to_frame()
    assert len(frame) == 600
    for name in ("age", "pay", "kids"):
        found, y = collector.mean(name), frame[name].to_numpy()
        error = y.std(ddof=1) / np.sqrt(600)
        assert found.labels == (name,)
        assert found.values == pytest.approx([y.mean()], rel=1e-9)
        assert found.standard_errors == pytest.approx([error], rel=1e-9)
        field = next(one for one in collector.policy.fields if one.name == name)
        least, most = map(field.value, (0, field.law.n_answers - 1))
        ends = y.mean() - end_of(error, y.mean() - least), y.mean() + end_of(error, most - y.mean())
        assert [found.low[0], found.high[0]] == pytest.approx(np.clip(ends, *field.column.ends), rel=1e-6)
        narrow = collector.mean(name, level=0.5)
        assert narrow.high - narrow.values == pytest.approx(t.ppf(0.75, 599) * narrow.standard_errors, rel=0.05)


def test_the_mean_of_two_answers_has_the_interval_of_a_binomial_number(collector):
    frame, found = collector.to_frame(), collector.mean("yes")
    low, high = frame["yes"].min(), frame["yes"].max()
    exact = binomtest(int((frame["yes"] == high).sum()), 600).proportion_ci(0.95, "exact")
    ends = [low + (high - low) * end for end in exact]
    assert [found.low[0], found.high[0]] == pytest.approx(ends, rel=1e-9)


def test_means_of_groups_are_quotients_and_fiellers_interval_ends_where_it_should(collector):
    frame = collector.to_frame()
    found = collector.mean("pay", by="city")
    assert found.labels == ("Bonn", "Ulm", "missing")
    for i, city in enumerate(CITIES):
        w, y = indicator(frame, city), frame["pay"].to_numpy()
        ratio = (w * y).sum() / w.sum()
        assert found.values[i] == pytest.approx(ratio, rel=1e-9)
        rest = w * (y - ratio)
        assert found.standard_errors[i] == pytest.approx(rest.std(ddof=1) / np.sqrt(600) / w.mean(), rel=1e-6)
        for end, bound in ((found.low[i], min(0.0, ratio)), (found.high[i], max(10.0, ratio))):
            # Finite ends are clipped to the bounds, or to a mean beyond them.
            if np.isfinite(end) and end != bound:
                at_end = w * (y - end)
                assert 1 <= abs(at_end.mean()) / (T * at_end.std(ddof=1) / np.sqrt(600)) < 1.25
    assert np.isfinite(found.high[:2]).all()


def test_variances_are_those_of_moments(collector):
    frame = collector.to_frame()
    age, pay = ((frame[name].to_numpy() - low) / low for name, low in (("age", 50.0), ("pay", 5.0)))

    def of_square(mechanism, y):
        constant, _, square = mechanism.variance_coefficients
        return (y**2 - constant) / (1 + square)

    moments = []
    for mechanism, y in ((SquareWave(2.0), age), (Piecewise(2.0), pay)):
        moments.append(of_square(mechanism, y).mean() - y.mean() ** 2 + y.var() / 600)
    assert collector.variance("age").values == pytest.approx([moments[0] * 50**2], rel=1e-6)
    assert collector.variance("pay").values == pytest.approx([moments[1] * 5**2], rel=1e-6)


def test_frequencies_are_those_of_the_inverted_response(collector):
    frame = collector.to_frame()
    found = collector.frequencies("city", consistent=None)
    assert found.labels == ("Bonn", "Ulm", "missing")
    for i, city in enumerate(CITIES):
        scores = indicator(frame, city)
        assert found.values[i] == pytest.approx(scores.mean(), rel=1e-9)
        assert found.standard_errors[i] == pytest.approx(scores.std(ddof=1) / np.sqrt(600), rel=1e-9)
    law = POLICY.fields[3].law
    p, q = law.own_count / 2**64, law.other_count / 2**64
    shop = collector.frequencies("shop", consistent=None)
    bits = frame[[f"shop={i}" for i in range(70)]].to_numpy()
    assert shop.values == pytest.approx((bits.mean(axis=0) - q) / (p - q), abs=1e-12)


@pytest.mark.parametrize("consistent", ["project", "likelihood"])
def test_consistent_shares_are_a_distribution_within_their_intervals(collector, consistent):
    for method, name in (("histogram", "age"), ("histogram", "kids"), ("frequencies", "city"), ("frequencies", "shop")):
        raw = getattr(collector, method)(name)
        found = getattr(collector, method)(name, consistent=consistent)
        assert (found.values >= 0).all()
        assert found.values.sum() == pytest.approx(1)
        assert ((found.low <= found.values) & (found.values <= found.high)).all()
        # They hold all that the raw one holds of what can be.
        assert (found.low <= np.clip(raw.low, 0, 1)).all()
        assert (found.high >= np.clip(raw.high, 0, 1)).all()
        assert ((found.low >= 0) & (found.high <= 1)).all()


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 12.0])
@pytest.mark.parametrize(("bins", "shares"), [(1, [1]), (3, [1, 0, 0]), ([0, 0.5, 1], [1, 0])])
def test_bins_that_hold_every_number_or_none(epsilon, bins, shares):
    """All numbers, or none, are one score: the interval of its count was divided by 0."""
    policy = Policy("a test", (Field("no", Column(0, 1, kind="integer"), Duchi(epsilon).integer_law),))
    made, rng = Collector(policy), np.random.default_rng(0)
    for _ in range(50):
        made.add(policy.vector({"no": 0}, rng.bytes(160)))
    found = made.histogram("no", bins=bins, level=0.999)
    assert ((found.low <= found.values) & (found.values <= found.high)).all()
    assert ((found.low <= np.array(shares) + 1e-9) & (np.array(shares) - 1e-9 <= found.high)).all()


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("tail", [0, 2])
def test_a_quantile_of_a_rare_tail_is_in_its_interval_where_few_or_none_of_it_report(whole, tail):
    """Of people of whom 1.5% are in the tail, in one survey of a hundred in five none is."""
    field = Field("x", Column(0, 5, kind="integer" if whole else "number"), SquareWave(12.0).integer_law)
    made, words = Collector(Policy("a test", (field,))), np.random.default_rng(0)
    for i in range(100):
        made.add(made.policy.vector({"x": 5.0 * (i < tail)}, words.bytes(160)))
    found = made.quantiles("x", [0.01, 0.5, 0.985, 0.99])
    assert (found.low[3], found.high[3]) == (0, 5)
    assert found.high[2] == 5
    assert (found.high[:2] <= 0.1).all()


def test_large_domains_of_every_law(reports):
    """Sets, hashes and Hadamard's reports: the same estimates as those of the mechanism for tables."""
    rng = np.random.default_rng(8)
    kinds = SubsetSelection(1.0, 70), hashing(1.0, 70), hadamard(1.0, 70), RandomizedResponse(1.0, 70)
    fields = [Field(f"f{i}", Column(values=tuple(range(70))), one.integer_law) for i, one in enumerate(kinds)]
    policy = Policy("a test", tuple(fields))
    made = Collector(policy)
    for _ in range(300):
        record = {field.name: int(rng.integers(0, 70)) for field in fields}
        made.add(policy.vector(record, rng.bytes(8 * 400)))
    frame = made.to_frame()
    for field, mechanism in zip(fields[1:3], kinds[1:3], strict=True):
        answers = frame[field.name].to_numpy().astype(np.uint32)
        counts = mechanism.law.supporting(answers, np.ones(300))
        wanted = estimate_frequencies(counts, 300, *mechanism.law.support, of="population")
        found = made.frequencies(field.name, consistent=None)
        np.testing.assert_allclose(found.values, wanted.frequencies, atol=1e-12)
        np.testing.assert_allclose(found.standard_errors, wanted.standard_errors, rtol=1e-9)
    bits = frame[[f"f0={i}" for i in range(70)]].to_numpy()
    assert (bits.sum(axis=1) == kinds[0].set_size).all()
    expected = (bits.mean(axis=0) - kinds[0].q) / (kinds[0].p - kinds[0].q)
    np.testing.assert_allclose(made.frequencies("f0", consistent=None).values, expected, atol=1e-12)
    for field in fields:
        for kind in ("project", "likelihood"):
            assert made.frequencies(field.name, consistent=kind).values.sum() == pytest.approx(1)


def test_of_numbers_that_are_answered_for_together_means_are_known():
    rng = np.random.default_rng(9)
    columns = tuple(Column(0, high, name=name) for name, high in (("a", 10), ("b", 20), ("c", 30)))
    city = Field("city", Column(values=CITIES), RandomizedResponse(2.0, 3).integer_law)
    policy = Policy("a test", (Field("abc", columns, SampledLaw(3, 1, Duchi(1.0).integer_law)), city))
    made = Collector(policy)
    for _ in range(200):
        made.add(policy.vector({"a": 5, "b": 20, "c": 0, "city": "Ulm"}, rng.bytes(8 * 50)))
    frame = made.to_frame()
    for name in "abc":
        assert made.mean(name, consistent=None).values == pytest.approx([frame[name].mean()], rel=1e-9)
        assert made.mean(name, by="city").labels == ("Bonn", "Ulm", "missing")
    for method, asked in (("variance", {}), ("mean", {"by": "b"}), ("mean", {"where": {"b": (0, 1)}})):
        with pytest.raises(ValueError, match="Use `mean`: "):
            getattr(made, method)("a", **asked)
    pytest.importorskip("jinja2")
    assert made.page().count("<h2>") == 2
    for one, name in zip(made._group_means(policy.fields[0], 0.95, None), "abc", strict=True):
        wanted = made.mean(name, consistent=None)
        assert (one.what, one.labels, one.n, one.level) == (wanted.what, wanted.labels, wanted.n, wanted.level)
        for part in ("values", "standard_errors", "low", "high", "most"):
            np.testing.assert_allclose(getattr(one, part), getattr(wanted, part), rtol=1e-12)
        np.testing.assert_allclose(one.moved_by(0.01), wanted.moved_by(0.01), rtol=1e-12)


# What forged reports can do.


def test_forged_reports_move_estimates_by_no_more_than_is_said(reports):
    """The worst that 30 of 600 can do to a mean and to a share, done."""
    share, honest = 30 / 600, reports[:570]
    laws = {field.name: field.law for field in POLICY.fields}
    before = collect(reports)
    for name, answers, radius in (("age", (0, laws["age"].n_answers - 1), 50), ("yes", (0, 1), 0.5)):
        bound = before.mean(name, consistent=None).moved_by(share)[0]
        law = laws[name]
        assert bound == pytest.approx(share * radius * (law.value(answers[1]) - law.value(answers[0])), rel=1e-9)
        for answer in answers:
            after = collect(honest + forged(30, name, answer))
            moved = abs(np.subtract(*(one.mean(name, consistent=None).values for one in (after, before))))[0]
            assert bound / 4 < moved <= bound
    for code in range(3):
        bound = before.frequencies("city", consistent=None).moved_by(share)[code]
        after = collect(honest + forged(30, "city", code))
        moved = abs(np.subtract(*(one.frequencies("city", consistent=None).values for one in (after, before))))[code]
        assert bound / 4 < moved <= bound
        projected = [one.frequencies("city", consistent="project").values for one in (before, after)]
        assert (
            abs(projected[1] - projected[0]).max()
            <= before.frequencies("city", consistent="project").moved_by(share).max()
        )
    for estimate in (lambda one: one.mean("age", by="city"), lambda one: one.variance("age")):
        bound = estimate(before).moved_by(share)
        after = collect(honest + forged(30, "age", 0))
        assert (abs(estimate(after).values - estimate(before).values) <= bound).all()


def forged(n, name, answer):
    """Reports that all give one answer to a field, and the first one to all others."""
    answers = [answer if field.name == name else 0 for field in POLICY.fields]
    return [POLICY._pack(i.to_bytes(16, "big"), answers) for i in range(n)]


# What is refused.


@pytest.mark.parametrize(
    ("ask", "rule"),
    [
        (lambda c: c.mean("nobody"), "A field must be one of"),
        (lambda c: c.mean("city"), "needs a number"),
        (lambda c: c.frequencies("age"), "needs a category"),
        (lambda c: c.mean("age", by="age"), "must be different fields"),
        (lambda c: c.mean("age", by="city", where={"city": "Bonn"}), "must be different fields"),
        (lambda c: c.mean("age", where={"city": "Berlin"}), "must be one of the values"),
        (lambda c: c.mean("age", where={"city": []}), "must have a value"),
        (lambda c: c.mean("age", where={"pay": 3}), "must be \\(low, high\\)"),
        (lambda c: c.mean("age", where={"pay": (3, 2)}), "low < high within its bounds"),
        (lambda c: c.mean("age", where={"pay": (11, 12)}), "low < high within its bounds"),
        (lambda c: c.mean("age", level=1.0), "level"),
        (lambda c: c.variance("yes"), "Variances need mechanism='square_wave', or another law of a lattice"),
        (lambda c: c.histogram("age", bins=0), "bins must be from 1 to 256"),
        (lambda c: c.histogram("age", bins="auto"), "number of bins, or their edges"),
        (lambda c: c.histogram("age", bins=[50, 20]), "Edges must ascend"),
        (lambda c: c.histogram("age", bins=[50, 200]), "Edges must ascend"),
        (lambda c: c.histogram("age", consistent="both"), "consistent must be"),
        (lambda c: c.frequencies("city", consistent="likelihood", by="yes"), "takes neither `by`"),
        (lambda c: c.frequencies("city", level=0.0), "level must lie inside"),
        (lambda c: c.quantiles("age", level="most"), "level must lie inside"),
        (lambda c: c.variance("age", level=np.nan), "level must lie inside"),
        (lambda c: c.quantiles("age", [0.0]), "levels"),
        (lambda c: c.quantiles("age", []), "levels must be a list of numbers, at least one"),
        (lambda c: c.quantiles("age", 0.5), "levels must be a list of numbers, at least one"),
    ],
)
def test_what_cannot_be_estimated_is_refused(collector, ask, rule):
    with pytest.raises(ValueError, match=rule):
        ask(collector)


def test_too_few_reports_are_refused(reports):
    for name, field in (("mean", "age"), ("frequencies", "city"), ("quantiles", "age"), ("histogram", "age")):
        for n in (0, 1):
            with pytest.raises(ValueError, match="at least 2 reports"):
                getattr(collect(reports[:n]), name)(field)


# What is shown.


def test_a_frame_has_what_was_released(reports):
    made = collect(reports[:3])
    frame = made.to_frame()
    by_id = sorted(map(POLICY.read, reports[:3]), key=lambda one: one.report_id)
    age, *_, yes = POLICY.fields
    assert frame["age"].tolist() == [age.value(one.answers["age"]) for one in by_id]
    assert frame["yes"].tolist() == [yes.value(one.answers["yes"]) for one in by_id]
    assert [None if city != city else city for city in frame["city"]] == [CITIES[one.answers["city"]] for one in by_id]
    bits = frame[[f"shop={i}" for i in range(70)]].to_numpy()
    assert [int("".join(map(str, row.astype(int))), 2) for row in bits] == [one.answers["shop"] for one in by_id]


def test_what_is_shown_is_escaped_and_loads_nothing(collector):
    pytest.importorskip("jinja2")
    page, view = collector.page(), collector._repr_html_()
    for text in (page, view):
        assert "a <test>" not in text
        assert "a &lt;test&gt;" in text
    assert page.startswith("<!doctype html>")
    assert "default-src 'none'" in page
    assert not re.search(r"(src|href)=|<script|url\(", page)
    assert page.count("<svg") == page.count("</svg>") == 5
    assert "nan" not in page
    assert repr(collector) == "Collector('a <test>', ReportCounts(accepted=600, foreign=0, broken=0, doubled=0))"


def test_dates_are_shown_as_dates_and_frames_have_them():
    rng = np.random.default_rng(0)
    day = Field("day", Column(18_262, 20_088, kind="date"), SquareWave(4.0).integer_law)
    policy = Policy(
        "a test", (day, Field("city", Column(values=("Bonn", "Ulm")), RandomizedResponse(1.0, 2).integer_law))
    )
    made = Collector(policy)
    for _ in range(400):
        made.add(policy.vector({"day": "2022-07-02", "city": "Ulm"}, rng.bytes(8 * 50)))
    mean = made.mean("day")
    [shown] = mean.to_dict()["estimate"]
    assert abs((shown - datetime.date(2022, 7, 2)).days) < 200
    assert str(shown) in repr(mean)
    assert "2020-01-01" in made.histogram("day", bins=2).labels[0]
    frame = made.quantiles("day").to_frame()
    assert list(frame) == ["estimate", "std err", "low", "high"]
    assert all(isinstance(one, datetime.date) for one in frame["estimate"])
    assert made.frequencies("city").to_frame().index.tolist() == ["Bonn", "Ulm"]
    with pytest.raises(ValueError, match=r"must be \(low, high\), for dates as days; got \('2020-01-01'"):
        made.frequencies("city", where={"day": ("2020-01-01", "2021-01-01")})
    unknown = replace(mean, low=np.array([-np.inf]), high=np.array([np.nan]))
    assert unknown.to_dict()["low"] == unknown.to_dict()["high"] == [None]


@pytest.mark.parametrize("n", [3, 12, 60])
def test_estimates_are_within_their_bounds_and_their_intervals_for_all_people_and_for_groups(n):
    """Ages from 18 to 90 had a mean of -.4 in a group, and a share was 1.28, where all people together had neither."""
    age = Field("age", Column(18, 90), SquareWave(0.5).integer_law)
    fields = (
        age,
        *(Field(name, Column(values=tuple("abc")), RandomizedResponse(1.0, 3).integer_law) for name in ("c", "d")),
    )
    policy, rng, beyond = Policy("a test", fields), np.random.default_rng(n), 0
    for _ in range(8):
        made = Collector(policy)
        for _ in range(n):
            made.add(policy.vector({"age": 20, "c": "a", "d": "abc"[rng.integers(3)]}, rng.bytes(240)))
        for asked in ({}, {"by": "d"}, {"where": {"d": ["a", "b"]}}):
            for estimate, name, ends in (
                (made.mean, "age", (18, 90)),
                (made.variance, "age", (0, 36**2)),
                (made.frequencies, "c", (0, 1)),
                (made.histogram, "age", (0, 1)),
            ):
                found, raw = estimate(name, **asked), estimate(name, consistent=None, **asked)
                known = np.isfinite(found.values)
                assert (known == np.isfinite(raw.values)).all()
                assert (found.low <= found.values)[known].all()
                assert (found.values <= found.high)[known].all()
                assert (ends[0] <= found.values[known]).all()
                assert (found.values[known] <= ends[1]).all()
                assert (raw.low <= raw.values)[known].all()
                assert (raw.values <= raw.high)[known].all()
                np.testing.assert_array_equal(found.standard_errors, raw.standard_errors)
                beyond += ((raw.values < ends[0]) | (raw.values > ends[1]))[known].sum()
                if ends == (0, 1) and known.all():
                    assert found.values.sum() == pytest.approx(len(found.values) / (3 if name == "c" else 8))
    assert beyond > 20


@pytest.mark.parametrize("where", ["city=Ulm", ["city"], {"city"}, ("city", "Ulm")])
def test_a_filter_that_is_no_dict_is_refused(collector, where):
    for ask in (collector.mean, collector.histogram, collector.variance):
        with pytest.raises(TypeError, match=f"where must be a dict such as .*; got {type(where).__name__}"):
            ask("age", where=where)
    with pytest.raises(TypeError, match="where must be a dict"):
        collector.frequencies("city", where=where)


@pytest.mark.parametrize("policy", [None, "policy.json", {"fields": []}])
def test_a_collector_needs_a_policy(policy):
    with pytest.raises(TypeError, match=f"policy must be a Policy.*; got {type(policy).__name__}"):
        Collector(policy)


def test_no_forged_reports_move_nothing_and_too_many_anything(collector):
    grouped = collector.mean("pay", by="city")
    assert grouped.moved_by(0.0).tolist() == [0.0, 0.0, 0.0]
    assert grouped.moved_by(1.0).tolist() == [np.inf] * 3
    assert collector.frequencies("city", consistent="likelihood").moved_by(0.01).tolist() == [1.0] * 3
    for share in (-0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match="share must be from 0 to 1"):
            grouped.moved_by(share)


def test_an_interval_of_equal_answers_holds_their_mean():
    """By a rounding the end of an interval lay beyond the estimate."""
    field = Field("pay", Column(0.3, 7.7), Duchi(12.0).integer_law)
    policy = Policy("a test", (field,))
    for value, n in itertools.product((0.3, 7.7), range(2, 40)):
        made = Collector(policy)
        for one in policy.release_table({"pay": [value] * n}):
            made.add(one)
        found = made.mean("pay")
        assert found.low <= found.values <= found.high


@pytest.mark.parametrize("epsilon", [1.0, 60.0])
def test_reports_that_are_alike_have_a_standard_error(epsilon):
    """Three equal answers had a standard error of 0, beside an interval of all shares."""
    smokes = Field("smokes", Column(values=("no", "yes")), RandomizedResponse(epsilon, 2).integer_law)
    pay = Field("pay", Column(0, 10), SquareWave(epsilon).integer_law)
    policy = Policy("a test", (smokes, pay))
    made = Collector(policy)
    for id in range(3):
        made.add(policy.vector({"smokes": "yes", "pay": 5}, bytes([id] * 16) + bytes(400)))
    assert made.n_reports == 3
    for found in (made.frequencies("smokes"), made.mean("pay"), made.variance("pay")):
        assert (found.standard_errors > 0.3).all()


@pytest.mark.slow
@pytest.mark.parametrize("value", [0.0, 37.3, 100.0])
def test_quantiles_of_people_who_all_have_one_number_are_near_it(value):
    """Which is somewhere within a bin: 20 surveys of fixed noise, of which most would miss it if bins were even."""
    policy = Policy("a test", (Field("age", Column(0, 100), SquareWave(4.0).integer_law),))
    rng, n_held, widths = np.random.default_rng(0), np.zeros(3), []
    for _ in range(20):
        made = Collector(policy)
        for _ in range(300):
            made.add(policy.vector({"age": value}, rng.bytes(160)))
        found = made.quantiles("age")
        widths.append(found.high - found.low)
        n_held += (found.low <= value) & (value <= found.high)
    assert (n_held >= 17).all()
    assert (np.median(widths, axis=0) <= 7).all()


@pytest.mark.parametrize("show", ["page", "to_frame"])
def test_a_group_of_numbers_is_decoded_once_a_report(monkeypatch, show):
    pytest.importorskip("jinja2")
    columns = tuple(Column(0, 1, name=f"c{i}") for i in range(30))
    policy = Policy("a test", (Field("group", columns, SampledLaw(30, 1, Duchi(1.0).integer_law)),))
    made = Collector(policy)
    for one in policy.release_table({f"c{i}": [0.5] * 50 for i in range(30)}):
        made.add(one)
    decoded = []
    real = SampledLaw.values
    monkeypatch.setattr(SampledLaw, "values", lambda law, answer: decoded.append(answer) or real(law, answer))
    getattr(made, show)()
    assert len(decoded) <= 50
