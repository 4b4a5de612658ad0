"""Measure the coverage of a collector's intervals, and the cost of large collections.

Usage: python benchmarks/collector.py [--surveys 2000] [--people 5000] [--seed 0] [--named quantiles]
                                      [--sampled 3] [--only coverage|quantiles|pairs|million|vectors]

coverage: so many simulated surveys, each of people drawn anew from one population, whose reports go to a Collector.
A line is one estimate: how often its intervals held the population's truth (of several numbers the mean, and the least
and the largest of one), the median standard error, and the estimates' own spread. Numbers with heaps are ages of whole
years, of which two in five are rounded to tens, and tips of which half are rounded to whole ones. With --named, only
estimates whose name holds one of these words. With --sampled, each person is asked so many of the ten fields; estimates
of more fields together are left out.

quantiles: the bias of the quantiles .5 and .9 at 20,000, 100,000 and a million people, from the counts that the law
leads to expect, over the spread of estimates from drawn counts, and the seconds that one takes.

pairs: the coverage of tables, means and shares of four columns, of which each person answers for one pair.

million: the seconds that a file of a million reports of 20 columns takes to be read, the peak memory, and the seconds
of estimates of one number, of one category, and of both together.

vectors: the bytes of a report of 128 numbers, the seconds of a device and of a collector for each, and the mean's error
over that of PrivUnit, for --people people, at most 5,000; then the coverage of the mean of 8 numbers.
"""

import argparse
import resource
import tempfile
import time
import warnings
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.special import betaincinv
from scipy.stats import beta, norm

from skldp import Collector
from skldp.client import Field, Policy, VectorField
from skldp.collection._report_files import Found
from skldp.collection._report_tables import ReportColumns, answer_bytes
from skldp.collection._survey_estimates import Sums, quotients
from skldp.collection._survey_fields import distribution_of
from skldp.exceptions import SeededNoiseWarning
from skldp.mechanisms import Column, Piecewise, RandomizedResponse, noise_from
from skldp.mechanisms.categorical._one_hot import SubsetSelection, UnaryEncoding
from skldp.mechanisms.numeric._unit_mechanisms import Duchi, Hybrid, SquareWave
from skldp.mechanisms.vector._privunit import PrivUnitBall

MECHANISMS = {
    "age": SquareWave(1.0),
    "pay": Piecewise(3.0),
    "hours": Hybrid(2.0),
    "kids": Piecewise(2.0),
    "yes": Duchi(0.5),
    "city": RandomizedResponse(1.0, 4),
    "member": RandomizedResponse(2.0, 2),
    "shop": UnaryEncoding(1.0, 16),
    "years": SquareWave(1.0),
    "tips": Piecewise(3.0),
}
BOUNDS = {
    "age": (0, 100),
    "pay": (0, 10),
    "hours": (0, 24),
    "kids": (0, 5),
    "yes": (0, 1),
    "years": (0, 100),
    "tips": (0, 10),
}
CITY = np.array([0.5, 0.3, 0.2, 0.0])
MEMBER = np.array([0.7, 0.3])
SHOP = np.append(0.5 ** np.arange(1, 16), 0.5**15)
KIDS = np.array([0.35, 0.25, 0.2, 0.1, 0.07, 0.03])
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
TURN = 250


def law_field(name):
    """The field of a policy."""
    law = MECHANISMS[name].integer_law
    if name in BOUNDS:
        kind = "integer" if name in ("kids", "yes", "years") else "number"
        return Field(name, Column(*BOUNDS[name], kind=kind), law)
    return Field(name, Column(values=tuple(f"{name} {i}" for i in range(law.n_codes))), law)


POLICY = Policy("a simulated survey", tuple(map(law_field, MECHANISMS)))


def people(n, rng):
    """Records: pay follows age, and differs between cities; hours follow it too."""
    age, city, member = 100 * rng.beta(2, 4, n), rng.choice(4, n, p=CITY), rng.choice(2, n, p=MEMBER)
    pay = 0.05 * age + 1.0 * (city == 1) + 4 * rng.beta(2, 2, n) * (1 - 0.5 * member)
    hours = 24 * beta.ppf(rng.random(n), 3, 3)
    records = {
        "age": age,
        "pay": pay,
        "hours": hours,
        "kids": rng.choice(6, n, p=KIDS).astype(float),
        "yes": (rng.random(n) < 0.3).astype(float),
        "city": city,
        "member": member,
        "shop": rng.choice(16, n, p=SHOP),
    }
    years, tips = 100 * rng.beta(2, 4, n), 10 * rng.beta(2, 3, n)
    return records | {
        "years": np.where(rng.random(n) < 0.4, 10 * np.rint(years / 10), np.rint(years)),
        "tips": np.where(rng.random(n) < 0.5, np.rint(tips), tips),
    }


def columns_of_people(records, seed, ids, n_sampled=None):
    """The released integers of records, from the mechanisms for tables."""
    answers, n = [], len(ids)
    asked = np.ones((n, len(MECHANISMS)), dtype=bool)
    if n_sampled is not None:
        chosen = noise_from(np.random.default_rng([seed, 77])).subsets(n, len(MECHANISMS), n_sampled)
        asked[...] = False
        np.put_along_axis(asked, chosen, True, axis=1)
    for i, (name, mechanism) in enumerate(MECHANISMS.items()):
        noise = noise_from(np.random.default_rng([seed, i]))
        law = mechanism.integer_law
        if name in BOUNDS:
            low, high = BOUNDS[name]
            rows = ((records[name] - (low + high) / 2) / ((high - low) / 2))[:, None]
            given = numbers_to_answers(law, mechanism.release(rows, noise).rows[:, 0])
        elif isinstance(mechanism, RandomizedResponse):
            given = mechanism.release(records[name][:, None], noise).rows[:, 0]
        else:
            bits = mechanism.release(records[name][:, None], noise).rows
            given = bits @ (1 << np.arange(law.n_codes - 1, -1, -1))
        marked = np.where(asked[:, i], given, law.n_answers)
        answers.append(marked.astype(f"u{answer_bytes(law.n_answers + (n_sampled is not None))}"))
    return ReportColumns(ids, tuple(answers))


def numbers_to_answers(law, values):
    """Which answer stands for each released number."""
    if law.name == "two_answers":
        return values > 0
    lattice = law.lattice if law.name == "mixture" else law
    cells = values / 2.0**lattice.step_exponent + lattice.n_cells // 2
    if law.name == "lattice":
        return cells
    few = np.array([law.few.value(i) for i in range(law.few.n_answers)])
    nearest = np.abs(values[:, None] - few).argmin(axis=1)
    return np.where(np.isin(values, few), lattice.n_cells + nearest, cells)


ESTIMATES = {
    "mean of age (square wave)": lambda c: c.mean("age"),
    "mean of pay (piecewise)": lambda c: c.mean("pay"),
    "mean of hours (hybrid)": lambda c: c.mean("hours"),
    "mean of yes (Duchi)": lambda c: c.mean("yes"),
    "mean of pay by city": lambda c: c.mean("pay", by="city"),
    "mean of pay where member": lambda c: c.mean("pay", where={"member": "member 1"}),
    "mean of pay by city where member": lambda c: c.mean("pay", by="city", where={"member": "member 0"}),
    "mean of pay where age in (20, 60)": lambda c: c.mean("pay", where={"age": (20, 60)}),
    "variance of age": lambda c: c.variance("age"),
    "variance of pay": lambda c: c.variance("pay"),
    "variance of pay where member": lambda c: c.variance("pay", where={"member": "member 0"}),
    "shares of city, raw": lambda c: c.frequencies("city", consistent=None),
    "shares of shop, raw": lambda c: c.frequencies("shop", consistent=None),
    "shares of shop by member": lambda c: c.frequencies("shop", consistent=None, by="member"),
    "histogram of age, raw": lambda c: c.histogram("age", consistent=None),
    "histogram of pay, raw": lambda c: c.histogram("pay", consistent=None),
    "histogram of hours, raw": lambda c: c.histogram("hours", consistent=None),
    "histogram of kids, raw": lambda c: c.histogram("kids", consistent=None),
    "city, projected": lambda c: c.frequencies("city", consistent="project"),
    "city, likeliest": lambda c: c.frequencies("city", consistent="likelihood"),
    "shop, projected": lambda c: c.frequencies("shop", consistent="project"),
    "histogram of age, projected": lambda c: c.histogram("age", consistent="project"),
    "histogram of pay, likeliest": lambda c: c.histogram("pay", consistent="likelihood"),
    "quantiles of age": lambda c: c.quantiles("age", QUANTILES),
    "quantiles of pay": lambda c: c.quantiles("pay", QUANTILES),
    "quantiles of hours": lambda c: c.quantiles("hours", QUANTILES),
    "quantiles of years (heaps)": lambda c: c.quantiles("years", QUANTILES),
    "quantiles of tips (heaps)": lambda c: c.quantiles("tips", QUANTILES),
    "quantiles of kids (whole)": lambda c: c.quantiles("kids", QUANTILES),
}


def truths(n=4_000_000):
    """Of the population: from its laws, or from many more people than any survey has."""
    big = people(n, np.random.default_rng(12345))
    age, pay, city, member, years, tips = (big[name] for name in ("age", "pay", "city", "member", "years", "tips"))

    def shares(values, low, high):
        return np.histogram(values, np.linspace(low, high, 9))[0] / n

    def quantiles(values):
        return np.quantile(values, QUANTILES, method="inverted_cdf")

    ages, pays = np.diff(beta.cdf(np.linspace(0, 1, 9), 2, 4)), shares(pay, 0, 10)
    kids = np.searchsorted(np.cumsum(KIDS), QUANTILES)
    return {
        "mean of age (square wave)": [100 / 3],
        "mean of pay (piecewise)": [pay.mean()],
        "mean of hours (hybrid)": [12.0],
        "mean of yes (Duchi)": [0.3],
        "mean of pay by city": [*(pay[city == i].mean() for i in range(3)), np.nan],
        "mean of pay where member": [pay[member == 1].mean()],
        "mean of pay by city where member": [*(pay[(city == i) & (member == 0)].mean() for i in range(3)), np.nan],
        "mean of pay where age in (20, 60)": [pay[(age >= 20) & (age < 60)].mean()],
        "variance of age": [1e4 * beta.var(2, 4)],
        "variance of pay": [pay.var()],
        "variance of pay where member": [pay[member == 0].var()],
        "shares of city, raw": CITY,
        "shares of shop, raw": SHOP,
        "shares of shop by member": np.tile(SHOP, 2),
        "histogram of age, raw": ages,
        "histogram of pay, raw": pays,
        "histogram of hours, raw": np.diff(beta.cdf(np.linspace(0, 1, 9), 3, 3)),
        "histogram of kids, raw": KIDS,
        "city, projected": CITY,
        "city, likeliest": CITY,
        "shop, projected": SHOP,
        "histogram of age, projected": ages,
        "histogram of pay, likeliest": pays,
        "quantiles of age": 100 * beta.ppf(QUANTILES, 2, 4),
        "quantiles of pay": quantiles(pay),
        "quantiles of hours": 24 * beta.ppf(QUANTILES, 3, 3),
        "quantiles of years (heaps)": quantiles(years),
        "quantiles of tips (heaps)": quantiles(tips),
        "quantiles of kids (whole)": kids,
    }


def survey(n, seed, names=tuple(ESTIMATES), n_sampled=None):
    """One survey's estimates of these names."""
    rng = np.random.default_rng([seed, 99])
    ids = rng.integers(0, 256, (n, 16)).astype(np.uint8)
    policy = replace(POLICY, n_sampled=n_sampled)
    collector = Collector(policy)
    collector._take(Found(columns_of_people(people(n, rng), seed, ids, n_sampled), 0, 0))
    return {name: ESTIMATES[name](collector) for name in names}


def n_fields_of(name):
    """How many fields an estimate takes together."""
    return 1 + name.count(" by ") + name.count(" where ")


def coverage(n_surveys, n, seed, words, n_sampled=None):
    """Print the table of estimates whose names hold one of the words, and what is known of it after every turn."""
    wanted = {name: values for name, values in truths().items() if any(word in name for word in words)}
    most = n_sampled or len(MECHANISMS)
    true = {name: np.asarray(values, dtype=float) for name, values in wanted.items() if n_fields_of(name) <= most}
    # From the first to the last row, where there are two.
    true = {name: np.atleast_2d(values) for name, values in true.items()}
    held = {name: np.zeros(values.shape[1]) for name, values in true.items()}
    values, errors = {name: [] for name in true}, {name: [] for name in true}
    for i in range(n_surveys):
        for name, found in survey(n, seed + i, true, n_sampled).items():
            held[name] += (found.low <= true[name][-1]) & (true[name][0] <= found.high)
            values[name].append(found.values)
            errors[name].append(found.standard_errors)
        if (i + 1) % TURN and i + 1 < n_surveys:
            continue
        epsilon = replace(POLICY, n_sampled=n_sampled).epsilon
        asked = "" if n_sampled is None else f" asked {n_sampled} of {len(MECHANISMS)} fields"
        print(f"\n{i + 1} surveys of {n} people{asked}, epsilon {epsilon:.4g} in all, 95% intervals, seed {seed}")
        print(f"{'':36}{'mean':>7}{'least':>7}{'most':>7}{'std err':>10}{'spread':>10}")
        for name, truth in true.items():
            known = ~np.isnan(truth[0])
            rates = held[name][known] / (i + 1)
            told = np.median(np.array(errors[name])[:, known], axis=0).mean()
            spread = np.std(np.array(values[name])[:, known], axis=0).mean()
            cells = f"{rates.mean():7.3f}{rates.min():7.3f}{rates.max():7.3f}{told:10.4g}{spread:10.4g}"
            print(f"{name:36}{cells}", flush=True)


PAIRED = {
    "age": Column(0, 100, name="age"),
    "kids": Column(values=tuple(range(6)), name="kids"),
    "city": Column(values=tuple(range(4)), name="city"),
    "member": Column(values=(0, 1), name="member"),
}


def pairs_of(epsilon, n_knots=3):
    """A policy of all pairs of four columns, and the mechanism of each."""
    mechanisms, fields = [], []
    for one, two in combinations(PAIRED.values(), 2):
        sizes = [n_knots if column.values is None else len(column.values) for column in (one, two)]
        k = sizes[0] * sizes[1]
        mechanisms.append(RandomizedResponse(epsilon, k) if k <= 12 else SubsetSelection(epsilon, k))
        law = mechanisms[-1].integer_law
        fields.append(Field(f"{one.name} & {two.name}", (one, two), law, n_knots=n_knots))
    return Policy("pairs", tuple(fields), n_sampled=1), mechanisms


def survey_of_pairs(n, seed, policy, mechanisms):
    """One survey of pairs: its estimates by name."""
    rng = np.random.default_rng([seed, 98])
    records, ids = people(n, rng), rng.integers(0, 256, (n, 16)).astype(np.uint8)
    asked, answers = rng.integers(len(policy.fields), size=n), []
    for i, (field, mechanism) in enumerate(zip(policy.fields, mechanisms, strict=True)):
        own, code = np.flatnonzero(asked == i), 0
        for column, size in zip(field.columns, field.sizes, strict=True):
            values = records[column.name][own]
            if column.values is None:
                place = values / 100 * (size - 1)
                values = np.floor(place) + (rng.random(len(own)) < place % 1)
            code = code * size + values.astype(int)
        released = mechanism.release(code[:, None], noise_from(np.random.default_rng([seed, i]))).rows
        law = mechanism.integer_law
        given = released[:, 0] if released.shape[1] == 1 else released @ (1 << np.arange(law.n_codes - 1, -1, -1))
        column = np.full(n, law.n_answers, dtype=f"u{answer_bytes(law.n_answers + 1)}")
        column[own] = given
        answers.append(column)
    collector = Collector(policy)
    collector._take(Found(ReportColumns(ids, tuple(answers)), 0, 0))
    return {
        "table of city and member": collector.table("city", "member", consistent=None),
        "table of kids and city": collector.table("kids", "city", consistent=None),
        "the same, consistent": collector.table("kids", "city", consistent="project"),
        "mean of age": collector.mean("age"),
        "mean of age by member": collector.mean("age", by="member"),
        "mean of age where city": collector.mean("age", where={"city": [0, 1]}),
        "shares of kids": collector.frequencies("kids", consistent=None),
        "shares of kids by member": collector.frequencies("kids", consistent=None, by="member"),
    }


def pairs(n_surveys, n, seed, epsilon=2.0):
    """Print the coverage of estimates from pairs."""
    policy, mechanisms = pairs_of(epsilon)
    cells = np.outer(KIDS, CITY).reshape(-1)
    true = {
        "table of city and member": np.outer(CITY, MEMBER).reshape(-1),
        "table of kids and city": cells,
        "the same, consistent": cells,
        "mean of age": [100 / 3],
        "mean of age by member": [100 / 3] * 2,
        "mean of age where city": [100 / 3],
        "shares of kids": KIDS,
        "shares of kids by member": np.tile(KIDS, 2),
    }
    held = {name: np.zeros(len(values)) for name, values in true.items()}
    widths = {name: [] for name in true}
    for i in range(n_surveys):
        for name, found in survey_of_pairs(n, seed + i, policy, mechanisms).items():
            held[name] += (found.low <= true[name]) & (np.asarray(true[name]) <= found.high)
            widths[name].append(found.standard_errors.mean())
    print(
        f"\n{n_surveys} surveys of {n} people, one of {len(policy.fields)} pairs each, epsilon {epsilon:g}, seed {seed}"
    )
    print(f"{'':36}{'mean':>7}{'least':>7}{'most':>7}{'std err':>10}")
    for name, counts in held.items():
        rates = counts / n_surveys
        print(f"{name:36}{rates.mean():7.3f}{rates.min():7.3f}{rates.max():7.3f}{np.median(widths[name]):10.4g}")


def quantiles(seed):
    """Print how far expected counts lead off the truth, over what chance does."""
    u, rng = (np.arange(20_000) + 0.5) / 20_000, np.random.default_rng(seed)
    spread = beta.ppf(u, 2, 4)
    populations = {
        "exponential": -0.08 * np.log1p(-u * (1 - np.exp(-12.5))),
        "lognormal": np.exp(norm.ppf(u) * 0.8 + np.log(0.1)).clip(0, 1),
        "Pareto": (0.02 * (1 - u) ** (-1 / 1.5)).clip(0, 1),
        "beta(2, 4)": spread,
        "uniform": u,
        "tens": np.rint(10 * spread) / 10,
        "30% at .25": np.where(np.arange(20_000) % 10 < 3, 0.25, spread),
    }
    field = Field("x", Column(0, 1), SquareWave(1.0, 16).integer_law)
    law, levels = field.law, (0.5, 0.9)
    total = law.n_cells * law.base + law.n_inner * law.extra
    print(f"\nQuantiles, epsilon 1, seed {seed}: bias over the spread of estimates")
    print(f"{'':14}{'people':>9}{'median':>9}{'.9':>9}{'seconds':>9}")
    for name, x in populations.items():
        starts = (2 * x - 1) * law.reach + (law.n_cells - law.n_inner) // 2
        cells = np.arange(law.n_cells + 1)
        held = [np.clip(cells - one, 0, law.n_inner) for one in np.sort(starts)[5::10]]
        chances = np.diff(law.base / total * cells + law.extra / total * np.mean(held, axis=0))
        truth = np.quantile(x, levels, method="inverted_cdf")
        for n in (20_000, 100_000, 1_000_000):
            expected = np.diff(np.rint(n * np.cumsum(chances)), prepend=0).astype(int)
            drawn = [rng.multinomial(n, chances / chances.sum()) for _ in range(10)]
            begun = time.perf_counter()
            found = []
            for counts in (expected, *drawn):
                likeliest, *_ = distribution_of(field, np.repeat(np.arange(law.n_cells, dtype=np.uint32), counts))
                found.append(likeliest.quantile(levels))
            seconds = (time.perf_counter() - begun) / len(found)
            ratio = (found[0] - truth) / np.std(found[1:], axis=0, ddof=1)
            print(f"{name:14}{n:9,}{ratio[0]:9.2f}{ratio[1]:9.2f}{seconds:9.2f}", flush=True)


def million(seed, n=1_000_000):
    """Print the seconds of a million reports of 20 columns: ten numbers and ten categories."""
    rng = np.random.default_rng(seed)
    laws = Piecewise(0.2).integer_law, RandomizedResponse(0.2, 5).integer_law
    fields = [Field(f"number {j}", Column(0, 10), laws[0]) for j in range(10)]
    words = [Field(f"word {j}", Column(values=tuple("abcde")), laws[1]) for j in range(10)]
    policy = Policy("20 columns", (*fields, *words))
    sizes, at_once = [field.law.n_answers for field in policy.fields], 10_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "reports.bin")
        with open(path, "wb") as file:
            for _ in range(n // at_once):
                answers = rng.integers(0, sizes, (at_once, 20)).tolist()
                file.writelines(policy._pack(rng.bytes(16), row) for row in answers)
        print(f"{n:,} reports of {policy.n_bytes} bytes; processor seconds")
        collector, start = Collector(policy), time.process_time()
        collector.add_file(path)
        assert collector.counts == (n, 0, 0, 0)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"read, each id once: {time.process_time() - start:.1f}; peak of the process {peak:.0f} MB")
    for name, estimate in (
        ("mean", lambda: collector.mean("number 3")),
        ("frequencies", lambda: collector.frequencies("word 3")),
        ("mean by a category", lambda: collector.mean("number 3", by="word 3")),
    ):
        start = time.process_time()
        estimate()
        print(f"{name}: {time.process_time() - start:.2f}")


def vectors(n, seed, epsilon=4.0, d=128):
    """Print what a vector of 128 numbers costs a device and a collector, and its error over that of PrivUnit."""
    field = VectorField.privunit("update", d, epsilon, bound=1.0)
    policy, rows = Policy("vectors", (field,)), np.random.default_rng(seed).normal(0.05, 0.03, (n, d))
    start = time.process_time()
    reports = [policy.release({"update": row}) for row in rows]
    released = time.process_time()
    collector = Collector(policy)
    for report in reports:
        collector.add(report)
    found = collector.mean("update")
    collected = time.process_time()
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1)
    mechanism = PrivUnitBall(d, epsilon, 1.0)
    noise = np.sqrt(mechanism.variance(rows).mean() / n)
    print(f"{d} numbers, epsilon {policy.epsilon:g}, {n:,} people: {policy.n_bytes} bytes a report")
    device, server = 1000 * (released - start) / n, 1000 * (collected - released) / n
    print(f"milliseconds of a device {device:.2f}, of a collector {server:.3f}")
    error = np.sqrt(np.mean((found.values - rows.mean(axis=0)) ** 2))
    own = found.standard_errors.mean()
    print(f"root mean squared error {error:.4f}, of PrivUnit {noise:.4f}; standard error {own:.4f}")
    law = field.law
    print(
        f"variance over PrivUnit's {(law.largest / mechanism.sphere.scale) ** 2:.4f}, of {law.n_directions} directions"
    )


def cosines(law, n, rng):
    """Cosines of the answered directions with a vector, by the law of order statistics."""
    k, m, a = law.n_close, law.n_directions, (law.dimension - 1) / 2
    close = rng.random(n) >= law.miss_count / 2**64
    # Given the next one in order, the close ones are independent beyond it; so are the others before the last of these.
    below, above = rng.beta(k + 1, m - k, n), rng.beta(k, m - k + 1, n)
    u = rng.random(n)
    return 1 - 2 * betaincinv(a, a, np.where(close, u * below, above + (1 - above) * u))


def simulated_vectors(law, vectors, rng):
    """Estimates of vectors in units of the bound, without drawing directions that are not answered."""
    lifted = np.column_stack([vectors, np.sqrt(np.maximum(1 - (vectors**2).sum(axis=1), 0))])
    t = cosines(law, len(vectors), rng)[:, None]
    across = rng.normal(size=lifted.shape)
    across -= (across * lifted).sum(axis=1, keepdims=True) * lifted
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    return law.largest * (t * lifted + np.sqrt(1 - t**2) * across)[:, :-1]


def vector_coverage(n_surveys, n, seed, epsilon):
    """How often intervals of the mean of skewed vectors of 8 numbers, one of them rare, held the truth."""
    rng, law = np.random.default_rng([seed, 5]), VectorField.privunit("update", 8, epsilon, bound=1.0).law
    people = rng.exponential(0.2, (100_000, 8)) * [1, -1, 0.5, 1, 0, 1, 1, 1]
    people[:, 7] *= 5 * (rng.random(len(people)) < 0.02)
    people /= np.maximum(np.linalg.norm(people, axis=1, keepdims=True), 1)
    truth, held, ends = people.mean(axis=0), np.zeros(8), np.full(8, law.largest)
    for _ in range(n_surveys):
        values = simulated_vectors(law, people[rng.integers(len(people), size=n)], rng)
        a, aa = values.sum(axis=0), (values**2).sum(axis=0)
        found = quotients(Sums(a, aa, a, float(n), float(n), -ends, ends, 1.0, 1.0), n, 0.95, "", [""] * 8)
        held += (found.low <= truth) & (truth <= found.high)
    return held / n_surveys


def main():
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--surveys", type=int, default=2000)
    parser.add_argument("--people", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=["coverage", "quantiles", "pairs", "million", "vectors"])
    parser.add_argument("--named", nargs="+", default=[""])
    parser.add_argument("--sampled", type=int)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", SeededNoiseWarning)
    if asked.only in (None, "quantiles"):
        quantiles(asked.seed)
    if asked.only in (None, "million"):
        million(asked.seed)
    if asked.only in (None, "vectors"):
        vectors(min(asked.people, 5000), asked.seed)
        for epsilon in (1.0, 4.0):
            rates = vector_coverage(asked.surveys, asked.people, asked.seed, epsilon)
            print(
                f"intervals of 8 numbers at epsilon {epsilon:g}, {asked.surveys} surveys of {asked.people} people: ",
                end="",
            )
            print(f"{rates.mean():.3f}, least {rates.min():.3f}, most {rates.max():.3f}", flush=True)
    if asked.only in (None, "pairs"):
        pairs(asked.surveys, asked.people, asked.seed)
    if asked.only in (None, "coverage"):
        coverage(asked.surveys, asked.people, asked.seed, asked.named, asked.sampled)


if __name__ == "__main__":
    main()
