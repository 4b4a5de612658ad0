"""A survey of 200,000 simulated people through files alone: two processes of clients, one collector.

Usage: python benchmarks/survey.py [--people 200000] [--seed 0] [--page page.html]
       python benchmarks/survey.py --release POLICY PEOPLE REPORTS

The first form writes a policy and two tables of people into a folder of its own, runs two processes of the second form
at the same time, each of which releases one table with secure noise and never imports scikit-learn, and collects what
they wrote; it prints sizes and seconds, and the estimates with their 95% intervals beside the truth of these people.
"""

import argparse
import csv
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CITIES = ("Berlin", "Bonn", "Hamburg", "Ulm", None)


def release(policy_path, people_path, reports_path):
    """What runs on people's own devices: a policy, a record, a report."""
    from skldp.client import Policy

    policy = Policy.load(policy_path)
    start = time.perf_counter()
    with open(people_path, newline="", encoding="utf-8") as people, open(reports_path, "wb") as reports:
        n = 0
        for row in csv.DictReader(people):
            record = {"age": float(row["age"]), "hours": float(row["hours"]), "ill": row["ill"] == "True"}
            reports.write(policy.release({**record, "city": row["city"] or None}))
            n += 1
    seconds = time.perf_counter() - start
    assert not {"sklearn", "pandas", "scipy"} & set(sys.modules), "a device needs none of them"
    print(f"client: {n:,} reports in {seconds:.1f} s, {seconds / n * 1e6:.0f} microseconds each")


def make_policy(path):
    """Four fields, epsilon 4 in all."""
    from skldp.client import CategoryField, NumberField, Policy
    from skldp.mechanisms import Piecewise, RandomizedResponse, SquareWave, integer_law

    Policy(
        "how long people work, by age, city and illness",
        (
            NumberField("age", 16, 96, integer_law(SquareWave(1.0)), "years"),
            NumberField("hours", 0, 80, integer_law(Piecewise(1.0)), "hours a week"),
            CategoryField("ill", (False, True), integer_law(RandomizedResponse(1.0, 2))),
            CategoryField("city", CITIES, integer_law(RandomizedResponse(1.0, 5))),
        ),
    ).save(path)


def make_people(n, seed):
    """A table: who is old or ill works less, and cities differ."""
    import numpy as np

    rng = np.random.default_rng(seed)
    age = 16 + 80 * rng.beta(2, 2.5, n)
    city = rng.choice(5, n, p=[0.4, 0.1, 0.3, 0.15, 0.05])
    ill = rng.random(n) < 0.1 + 0.2 * (age > 65)
    hours = np.clip(45 - 0.25 * (age - 16) - 10 * ill + 4 * (city == 2) + 8 * rng.standard_normal(n), 0, 80)
    return {"age": age, "hours": hours, "ill": ill, "city": city}


def collect(folder, table, page):
    """The other side."""
    import numpy as np

    from skldp import Collector
    from skldp.client import Policy

    start = time.perf_counter()
    collector = Collector(Policy.load(folder / "policy.json"))
    for path in sorted(folder.glob("reports-*.bin")):
        collector.add_file(path)
    print(f"collector: {collector.counts} in {time.perf_counter() - start:.1f} s")
    age, hours, ill, city = table.values()
    edges = np.linspace(16, 96, 9)
    rows = [
        (collector.mean("age"), [age.mean()]),
        (collector.variance("age"), [age.var()]),
        (collector.quantiles("age"), np.quantile(age, [0.25, 0.5, 0.75])),
        (collector.histogram("age", consistent="likelihood"), np.histogram(age, edges)[0] / len(age)),
        (collector.mean("hours"), [hours.mean()]),
        (collector.mean("hours", by="ill"), [hours[~ill].mean(), hours[ill].mean()]),
        (collector.mean("hours", by="city"), [hours[city == i].mean() for i in range(5)]),
        (
            collector.mean("hours", by="ill", where={"city": "Berlin"}),
            [hours[(ill == k) & (city == 0)].mean() for k in (0, 1)],
        ),
        (collector.correlation("age", "hours"), [np.corrcoef(age, hours)[0, 1]]),
        (collector.frequencies("city"), np.bincount(city, minlength=5) / len(city)),
        (
            collector.frequencies("ill", by="city"),
            np.ravel([[1 - ill[city == i].mean(), ill[city == i].mean()] for i in range(5)]),
        ),
    ]
    for found, truth in rows:
        print(found.title)
        for label, value, low, high, true in zip(found.labels, found.values, found.low, found.high, truth, strict=True):
            mark = "" if low <= true <= high else "  outside"
            print(f"  {label:36} {value:10.4f}  [{low:.4f}, {high:.4f}]  truth {true:.4f}{mark}")
    share = 0.01
    print(f"1% of forged reports move the mean of age by at most {collector.mean('age').moved_by(share)[0]:.3f} years")
    start = time.perf_counter()
    if page:
        Path(page).write_text(collector.page(), encoding="utf-8")
        print(f"page: {Path(page).stat().st_size / 1e3:.0f} kB in {time.perf_counter() - start:.1f} s")


def main():
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--release", nargs=3, metavar=("POLICY", "PEOPLE", "REPORTS"))
    parser.add_argument("--people", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page")
    asked = parser.parse_args()
    if asked.release:
        release(*asked.release)
        return
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        make_policy(folder / "policy.json")
        table = make_people(asked.people, asked.seed)
        cities = ["" if CITIES[code] is None else CITIES[code] for code in table["city"]]
        rows = list(zip(table["age"], table["hours"], table["ill"], cities, strict=True))
        half = len(rows) // 2
        for i, part in enumerate((rows[:half], rows[half:])):
            with open(folder / f"people-{i}.csv", "w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(["age", "hours", "ill", "city"])
                writer.writerows(part)
        paths = [[folder / "policy.json", folder / f"people-{i}.csv", folder / f"reports-{i}.bin"] for i in (0, 1)]
        clients = [subprocess.Popen([sys.executable, __file__, "--release", *map(str, of_one)]) for of_one in paths]
        assert [client.wait() for client in clients] == [0, 0]
        sizes = [(folder / f"reports-{i}.bin").stat().st_size for i in (0, 1)]
        print(f"files: {sum(sizes) / 1e6:.1f} MB of reports, {sum(sizes) / len(rows):.0f} bytes each")
        collect(folder, table, asked.page)


if __name__ == "__main__":
    main()
