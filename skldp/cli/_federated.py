"""``skldp federated``: federated learning with features, gradients or labels perturbed, over epsilon."""

import csv
import math
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from joblib import Parallel, delayed
from rich.console import Console
from sklearn.model_selection import train_test_split

from skldp.cli._options import Epsilons, Names, output_option, printable, progress_bar, rich_table
from skldp.exceptions import SeededNoiseWarning
from skldp.mechanisms._noise import noise_from
from skldp.study._datasets import BUNDLED, load_study_data
from skldp.study._federated_learning import federated_learning, summary_of_runs
from skldp.study._pipelines import FEATURE_MECHANISMS, LABEL_MECHANISMS, feature_mechanism, label_mechanism

_CLASSES = [name for name, (_, _, of_target) in BUNDLED.items() if of_target is None]
_FEATURES, _NONE, _EPSILONS = Names("bitrand,bitrand-exact"), Names("none"), Epsilons("1,2,5,10")
_SUFFIXES = {"features": "", "gradients": " on gradients", "anonymised coordinates": " anonymised"}
_MECHANISMS = f"none, or one or more with commas: {', '.join(FEATURE_MECHANISMS)}."


def _names(about: str) -> Any:
    return typer.Option(help=about, parser=Names)


def federated(
    data: Annotated[str, typer.Argument(help=f"{' or '.join(_CLASSES)}.")] = "digits",
    features: Annotated[Names, _names(f"On features, {_MECHANISMS}")] = _FEATURES,
    gradients: Annotated[Names, _names(f"On gradients, {_MECHANISMS}")] = _NONE,
    anonymised: Annotated[Names, _names(f"On gradients with an anonymiser, {_MECHANISMS}")] = _NONE,
    labels: Annotated[str, typer.Option(help=f"With features, none or {', '.join(LABEL_MECHANISMS)}.")] = "none",
    label_epsilon: Annotated[float, typer.Option(help="The budget of the label.")] = 1.0,
    epsilons: Annotated[Epsilons, typer.Option(help="Budgets, with commas.", parser=Epsilons)] = _EPSILONS,
    clients: Annotated[int, typer.Option(help="Clients that share the training rows.", min=1)] = 200,
    rounds: Annotated[int, typer.Option(help="Rounds of gradients.", min=1)] = 20,
    sampled_clients: Annotated[
        int | None, typer.Option(help="Clients that take part in a round; all if not given.")
    ] = None,
    local_steps: Annotated[int, typer.Option(help="Steps of a client in a round.", min=1)] = 1,
    gradient_bound: Annotated[float, typer.Option(help="Bound of a perturbed gradient's coordinates.")] = 0.1,
    delta: Annotated[float, typer.Option(help="Delta of the shuffled guarantee.")] = 1e-6,
    model: Annotated[str, typer.Option(help="The model to train: softmax or linear.")] = "softmax",
    seeds: Annotated[int, typer.Option(help="Trainings of each setting at each epsilon.", min=1)] = 3,
    seed: Annotated[int | None, typer.Option(help="Make the study repeatable.", min=0)] = None,
    jobs: Annotated[int | None, typer.Option(help="Parallel trainings; -1 uses all cores.")] = None,
    csv_path: Annotated[Path, output_option("--csv", about="The table to write, a CSV file.")] = Path("federated.csv"),
) -> None:
    """Train by FedSGD over many clients under local privacy, and compare what is perturbed."""
    if data not in _CLASSES:
        raise typer.BadParameter(f"The data must be {' or '.join(_CLASSES)}; got {data!r}.")
    loaded = load_study_data(data, task="classification")
    X = loaded.scaled()[0]
    mechanisms = {"features": features, "gradients": gradients, "anonymised coordinates": anonymised}
    label = None if labels == "none" else label_mechanism(labels, epsilon=label_epsilon, classes=loaded.classes)
    settings = _settings(mechanisms, label)
    X, X_test, y, y_test = train_test_split(X, loaded.y, test_size=0.25, stratify=loaded.y, random_state=0)
    # Without a mechanism there is no epsilon to vary.
    points = [(*one, epsilon) for one in settings.items() for epsilon in (epsilons if one[1] else epsilons[:1])]
    learning: dict[str, Any] = {"n_clients": clients, "n_rounds": rounds, "delta": delta, "model": model}
    learning |= {"gradient_bound": gradient_bound, "n_sampled_clients": sampled_clients, "local_steps": local_steps}
    console = Console()
    with progress_bar(console) as progress, warnings.catch_warnings():
        # The last line names the seed.
        warnings.simplefilter("ignore", SeededNoiseWarning)
        n_runs = len(points) * seeds
        run_seeds = [None] * n_runs if seed is None else noise_from(seed).integers(2**31, n_runs).tolist()
        bar = progress.add_task("federated learning", total=n_runs)
        calls = (
            delayed(federated_learning)(X, y, X_test, y_test, **given, epsilon=epsilon, **learning, seed=run_seed)
            for (_, given, epsilon), run_seed in zip((p for p in points for _ in range(seeds)), run_seeds, strict=True)
        )
        runs = []
        for run in Parallel(n_jobs=jobs, return_as="generator")(calls):
            runs.append(run)
            progress.update(bar, completed=len(runs))
    rows = [_row(*point, runs[i * seeds : (i + 1) * seeds]) for i, point in enumerate(points)]
    # A terminal may refuse to print; the file is written first.
    with csv_path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    headings = ("setting", "eps", "published", "exact local", "per", "shuffled", "accuracy", "AUC")
    console.print(rich_table("Federated learning", headings, [_cells(row) for row in rows]))
    if seed is not None:
        typer.echo(f"The noise comes from seed {seed}: no privacy against anyone who knows it.")
    typer.echo(printable(f"Wrote {csv_path}."))


def _settings(mechanisms: dict[str, Names], label: Any) -> dict[str, dict[str, Any]]:
    """Return the arguments of `federated_learning` for each setting by name."""
    found: dict[str, dict[str, Any]] = {"noiseless": {}}
    for perturbs, names in mechanisms.items():
        labels = {"label_mechanism": label} if perturbs == "features" else {}
        for name in names:
            if name != "none":
                mechanism = feature_mechanism(name, transform_noise=False)
                found[name + _SUFFIXES[perturbs]] = {"perturbs": perturbs, "mechanism": mechanism} | labels
    return found


def _row(name: str, given: dict[str, Any], epsilon: float, runs: list[Any]) -> dict[str, Any]:
    perturbs = given.get("perturbs", "nothing")
    return {
        "setting": name,
        "perturbs": perturbs,
        "unit": "record" if perturbs in ("nothing", "features") else "client",
        "epsilon": epsilon if given else math.inf,
        **summary_of_runs(runs),
    }


def _cells(row: dict[str, Any]) -> list[str]:
    """Return a row of the printed table; the file has more columns."""
    epsilons = (row[f"{name}_epsilon"] for name in ("published", "exact", "shuffled"))
    published, exact, mixed = ("" if math.isnan(epsilon) else f"{epsilon:,.4g}" for epsilon in epsilons)
    scores = [f"{row['accuracy_mean']:.3f}", f"{row['auc_mean']:.3f}"]
    return [row["setting"], f"{row['epsilon']:g}", published, exact, row["unit"], mixed, *scores]
