"""Compare regressions at the same epsilon: released rows, one gradient per person, public rows, a trusted collector.

All methods use one process, the same people and the same seeds: ``python benchmarks/baselines.py --data
diamonds.csv``. Each cell is the mean R2 on a test set, with the worst in brackets. ``--data none`` runs only
simulated designs; ``--cut`` reports accuracies for the classes of the cut. If diffprivlib is installed, its regression
is a second central baseline.
"""

import argparse
import math
import warnings

import numpy as np
import results
from learning import BOUNDS, TARGET_BOUNDS, read_diamonds
from one_gradient import OneGradientClassifier, OneGradientRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skldp import (
    LabelPrivateClassifier,
    LabelRR,
    NumericPrivatizer,
    PrivateDiscriminant,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivUnitTransformer,
)
from skldp.exceptions import OutOfDomainWarning, SeededNoiseWarning, TooFewPeopleWarning
from skldp.learning import sufficiency
from skldp.mechanisms import noise_from
from skldp.mechanisms.vector._multivariate_laplace import MultivariateLaplace
from skldp.study import ReleasedRowsRegressor

EPSILONS = (1.0, 2.0, 4.0, 8.0)
GRADIENTS = ("duchi", "piecewise", "hybrid", "privunit")
STEPS, CLIPS = (0.1, 0.3, 1.0), (0.05, 0.1, 0.25)


class Table:
    """People to ask and people to test on, features and target scaled to [-1, 1] by their declared bounds."""

    def __init__(self, name, X, y, n_people, bounds=(-1, 1), target_bounds=(-1, 1)):
        (low, high), (a, b) = bounds, target_bounds
        X = np.clip((X - np.array(low)) / (np.array(high) - np.array(low)) * 2 - 1, -1, 1)
        y = (y - a) / (b - a) * 2 - 1
        self.name, self.X, self.y = name, X[:n_people], y[:n_people]
        # Always the same, however many are asked.
        self.X_test, self.y_test = X[-9_940:], y[-9_940:]

    def score(self, model):
        """R2 on the people to test on."""
        model.fit(self.X, self.y)
        return float(1 - ((self.y_test - model.predict(self.X_test)) ** 2).mean() / self.y_test.var())


def design(d, n_people):
    """Correlated features of one size, and a line through them that explains 90%."""
    rng = np.random.default_rng(d)
    n = n_people + 9_940
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = 0.5 * X[:, j - 1] + math.sqrt(0.75) * X[:, j]
    X = np.clip(X / 3, -1, 1)
    signal = X @ rng.standard_normal(d)
    y = 0.3 * (math.sqrt(0.9) * signal / signal.std() + math.sqrt(0.1) * rng.standard_normal(n))
    return Table(f"design, d = {d}", X, np.clip(y, -1, 1), n_people)


def mechanism(name, epsilon, seed, **options):
    if name == "privunit":
        return PrivUnitTransformer(epsilon, norm=1.0, seed=seed)
    return NumericPrivatizer(epsilon, mechanism=name, seed=seed, **options)


def clean(estimator=None):
    return ReleasedRowsRegressor(None, LinearRegression() if estimator is None else estimator)


def released(name, epsilon, seed, n_features):
    releases = (
        PrivUnitTransformer(epsilon, norm=math.sqrt(n_features + 1), transform_noise=False, seed=seed)
        if name == "privunit"
        else mechanism(name, epsilon, seed, transform_noise=False)
    )
    return ReleasedRowsRegressor(releases, make_pipeline(StandardScaler(), Ridge()))


class CentralMoments:
    """A trusted collector's: the moments of all records with one vector of noise, epsilon-DP; one person replaced."""

    def __init__(self, epsilon, seed):
        self.epsilon, self.seed = epsilon, seed

    def fit(self, X, y):
        """Solve for the coefficients of the noisy moments."""
        z = np.column_stack([np.ones(len(y)), X, y])
        width = z.shape[1]
        i, j = np.triu_indices(width)
        weight = np.where(i == j, 1.0, math.sqrt(2))
        total = (z.T @ z)[i, j] * weight
        # A record's vector has the norm |z|^2, at most the number of its entries; two are at right angles at worst.
        apart = math.sqrt(2) * width
        law = MultivariateLaplace(len(total), self.epsilon / apart)
        noisy = law.release(total[None], noise_from(self.seed)).rows[0] / len(y)
        spread = math.sqrt(len(total) + 1) * apart / self.epsilon / len(y)
        moments = np.zeros((width, width))
        moments[i, j] = moments[j, i] = noisy / weight
        values, vectors = np.linalg.eigh(moments)
        moments = (vectors * np.maximum(values, 0)) @ vectors.T
        # The largest eigenvalue that noise alone has.
        ridge = spread * math.sqrt(2 * width)
        gram = moments[:-1, :-1] + ridge * np.diag([0.0] + [1.0] * (width - 2))
        self.beta = np.linalg.solve(gram, moments[:-1, -1])
        return self

    def predict(self, X):
        """Predict within the bounds."""
        return np.clip(np.column_stack([np.ones(len(X)), X]) @ self.beta, -1, 1)


class Diffprivlib:
    """That of diffprivlib, where it is installed and runs."""

    def __init__(self, epsilon, seed):
        from diffprivlib.models import LinearRegression as Central

        self.model = Central(epsilon=epsilon, bounds_X=(-1, 1), bounds_y=(-1, 1), random_state=seed)

    def fit(self, X, y):
        """Fit it."""
        self.model.fit(X, y)
        return self

    def predict(self, X):
        """Predict within the bounds."""
        return np.clip(self.model.predict(X), -1, 1)


def of_seeds(table, make, n_seeds):
    return [table.score(make(1_000 + seed)) for seed in range(n_seeds)]


def gradients_with_hindsight(table, epsilon, n_seeds):
    """The best mechanism, step and clip, chosen by two seeds on the test people themselves."""

    def maker(name, step, clip):
        return lambda seed: OneGradientRegressor(mechanism(name, epsilon, seed), step=step, clip=clip, seed=seed)

    tried = {
        (name, step, clip): np.mean(of_seeds(table, maker(name, step, clip), 2))
        for name in GRADIENTS
        for step in STEPS
        for clip in CLIPS
    }
    return of_seeds(table, maker(*max(tried, key=tried.get)), n_seeds)


def methods(table, n_seeds, *, hindsight):
    """The name of every method, and what gives its scores at an epsilon."""
    d = table.X.shape[1]
    models = {
        f"PrivateLinearRegression, {protocol}": lambda epsilon, seed, p=protocol: PrivateLinearRegression(
            epsilon, protocol=p, seed=seed
        )
        for protocol in ("rounds", "once")
    }
    baselines = {
        f"rows by {name}": lambda epsilon, seed, name=name: released(name, epsilon, seed, d)
        for name in ("best", "privunit")
    } | {
        f"one gradient a person, {name}": lambda epsilon, seed, name=name: OneGradientRegressor(
            mechanism(name, epsilon, seed), seed=seed
        )
        for name in GRADIENTS
    }
    central = {"trusted collector, noisy moments": CentralMoments}
    try:
        Diffprivlib(1.0, 0).fit(table.X[:50], table.y[:50])
        central["trusted collector, diffprivlib"] = Diffprivlib
    except (ImportError, AttributeError, TypeError, ValueError):
        # Not there, or it does not run with this scikit-learn.
        pass
    for name, make in (models | baselines | central).items():
        yield name, lambda epsilon, make=make: of_seeds(table, lambda seed: make(epsilon, seed), n_seeds)
    if hindsight:
        yield "gradients, with hindsight", lambda epsilon: gradients_with_hindsight(table, epsilon, n_seeds)


def public_rows(table, n_rows, n_seeds):
    scores = []
    for seed in range(n_seeds):
        chosen = np.random.default_rng(1_000 + seed).permutation(len(table.y))[:n_rows]
        few = clean(Ridge(1e-3)).fit(table.X[chosen], table.y[chosen])
        scores.append(1 - ((table.y_test - few.predict(table.X_test)) ** 2).mean() / table.y_test.var())
    return scores


def shown(scores):
    return f"{np.mean(scores):7.3f} [{min(scores):7.3f}]"


def show(table, n_seeds, *, hindsight):
    """Print the scores of all methods, and return them as rows of cells."""
    n, d = table.X.shape
    rows = [["without privacy", *[f"{table.score(clean()):.3f}"] * len(EPSILONS)]]
    print(f"\n{table.name}: {n:,} people, {n_seeds} seeds. Clean R2 {table.score(clean()):.4f}")
    print(f"{'epsilon':>28}" + "".join(f"{epsilon:>18g}" for epsilon in EPSILONS))
    print(f"{'J':>28}" + "".join(f"{sufficiency(n, d, epsilon):>18.0f}" for epsilon in EPSILONS), flush=True)
    for name, of in methods(table, n_seeds, hindsight=hindsight):
        scores = [of(epsilon) for epsilon in EPSILONS]
        rows.append([name, *map(results.cell, scores)])
        print(f"{name:>28}" + "".join(f"{shown(one):>18}" for one in scores), flush=True)
    for n_rows in (30, 100, 300, 1_000):
        print(f"{f'{n_rows:,} public rows':>28}" + f"{shown(public_rows(table, n_rows, n_seeds)):>18}", flush=True)
    return rows


def show_law(n_seeds):
    """How the gap to the clean fit falls with people, and grows with features: exponents by least squares of logs."""
    for protocol in ("rounds", "once"):
        logs, times, n_left_out = [], [], 0
        for d in (5, 10, 20, 40):
            for n in (10_000, 40_000, 160_000):
                table = design(d, n)
                best = table.score(clean())
                for epsilon in (1.0, 2.0, 4.0):
                    # Where the law begins, and where most of what there is to learn is still to be told apart.
                    if not 30 <= sufficiency(n, d, epsilon) <= 3_000:
                        continue
                    models = (
                        PrivateLinearRegression(epsilon, protocol=protocol, seed=1_000 + s) for s in range(n_seeds)
                    )
                    gap = (best - np.mean([table.score(model) for model in models])) / best
                    if gap > 0:
                        times.append(gap * sufficiency(n, d, epsilon))
                        logs.append([1.0, math.log(n), math.log(d + 1), math.log(epsilon), math.log(gap)])
                    else:
                        n_left_out += 1
        logs = np.array(logs)
        _, of_n, of_d, of_epsilon = np.linalg.lstsq(logs[:, :-1], logs[:, -1], rcond=None)[0]
        print(
            f"{protocol}: gap as n^{of_n:.2f} (d + 1)^{of_d:.2f} epsilon^{of_epsilon:.2f} over {len(logs)} designs "
            f"({n_left_out} without a gap); gap times J: median {np.median(times):.2f}, "
            f"from {min(times):.2f} to {max(times):.2f}",
            flush=True,
        )


def show_cut(X, log_price, n_people, n_seeds):
    """The cut of diamonds, five classes, from the other eight columns and the log price: accuracies."""
    cut, bounds = X[:, 1], [np.append(np.delete(end, 1), a) for end, a in zip(BOUNDS, TARGET_BOUNDS, strict=True)]
    table = Table("the cut", np.column_stack([np.delete(X, 1, axis=1), log_price]), cut, n_people, bounds, (-1, 1))
    people, classes, labels = table.X, np.arange(5), cut[:n_people]
    ordinary = LogisticRegression(C=1 / people.shape[1], max_iter=1_000)

    def of(make):
        return [make(1_000 + s).fit(people, labels).score(table.X_test, cut[-9_940:]) for s in range(n_seeds)]

    def rows(name, epsilon, seed):
        # Half of the epsilon for the features, half for the label.
        releases = PrivUnitTransformer(epsilon / 2, norm=3.0) if name == "privunit" else mechanism(name, epsilon / 2, 0)
        private = LabelPrivateClassifier(ordinary, label_mechanism=LabelRR(epsilon / 2, classes=classes, seed=seed))
        return make_pipeline(releases.set_params(transform_noise=False, seed=seed), StandardScaler(), private)

    methods = {
        f"PrivateLogisticRegression, {protocol}": lambda e, s, p=protocol: PrivateLogisticRegression(
            e, protocol=p, classes=classes, seed=s
        )
        for protocol in ("rounds", "once")
    }
    methods["PrivateDiscriminant"] = lambda e, s: PrivateDiscriminant(e, classes=classes, seed=s)
    methods |= {f"rows by {name}": lambda e, s, name=name: rows(name, e, s) for name in ("best", "privunit")}
    methods |= {
        f"one gradient a person, {name}": lambda e, s, name=name: OneGradientClassifier(
            mechanism(name, e, s), classes=classes, seed=s
        )
        for name in GRADIENTS
    }
    best, majority = (
        of(lambda seed: make_pipeline(StandardScaler(), ordinary))[0],
        np.bincount(cut[-9_940:].astype(int)),
    )
    references = {"without privacy": best, "the most frequent class": majority.max() / 9_940}
    print(f"\nThe cut: {n_people:,} people, {n_seeds} seeds. Clean {best:.4f}, majority {majority.max() / 9_940:.4f}")
    print(f"{'epsilon':>28}" + "".join(f"{epsilon:>18g}" for epsilon in EPSILONS), flush=True)
    found = [[name, *[f"{share:.3f}"] * len(EPSILONS)] for name, share in references.items()]
    for name, make in methods.items():
        scores = [of(lambda seed, make=make, e=epsilon: make(e, seed)) for epsilon in EPSILONS]
        found.append([name, *map(results.cell, scores)])
        print(f"{name:>28}" + "".join(f"{shown(one):>18}" for one in scores), flush=True)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="../shared/data/diamonds.csv")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--people", type=int, nargs="+", default=[5_000, 20_000, 44_000])
    parser.add_argument("--designs", type=int, nargs="*", default=[5, 20, 60], help="numbers of features")
    parser.add_argument("--cut", action="store_true", help="the cut of diamonds instead of everything else")
    parser.add_argument("--law", action="store_true", help="exponents of the gap in people, features and epsilon alone")
    results.add_option(parser)
    parser.add_argument("--no-hindsight", action="store_true", help="leave out what is chosen on the test people")
    chosen = parser.parse_args()
    for category in (OutOfDomainWarning, SeededNoiseWarning, TooFewPeopleWarning):
        warnings.simplefilter("ignore", category)
    if chosen.law:
        show_law(chosen.seeds)
        raise SystemExit
    tables = [design(d, n) for d in chosen.designs for n in chosen.people]
    if chosen.data != "none":
        X, y = read_diamonds(chosen.data)
        if chosen.cut:
            saved = [show_cut(X, y, n, chosen.seeds) for n in chosen.people]
            if chosen.save:
                results.save(chosen.save, ["accuracy at exact epsilon", *map("{:g}".format, EPSILONS)], saved[0])
            raise SystemExit
        tables = [Table("diamonds", X, y, n, BOUNDS, TARGET_BOUNDS) for n in chosen.people] + tables
    saved = [show(one, chosen.seeds, hindsight=not chosen.no_hindsight) for one in tables]
    if chosen.save:
        results.save(chosen.save, ["R2 at exact epsilon", *map("{:g}".format, EPSILONS)], saved[0])
