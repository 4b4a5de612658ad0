"""Names that help texts list, written out so that help imports no mechanism, and the layout of their lists."""

from collections.abc import Iterable, Mapping

DATA = ("digits", "wine", "diabetes", "friedman")
TASKS = ("classification", "regression")
TABLE_FILES = ".csv, .tsv (both also with .gz), .parquet or .arrow"
# Mechanisms of numbers in a policy; Laplace noise has no integer law.
NUMBERS = (
    *("duchi", "three_outputs", "piecewise", "piecewise_sub", "piecewise_opt"),
    *("square_wave", "hybrid", "hybrid_tp", "points", "ldp_fl"),
)
CATEGORIES = ("krr", "sue", "oue", "subset", "hashing", "hadamard")
FEATURES = (
    *("bitrand", "bitrand-exact", "bitrand-unbiased", "latent", "latent-exact", "ome", "ome-exact"),
    *("duchi", "three-outputs", "piecewise", "piecewise-sub", "piecewise-opt", "square-wave", "hybrid", "hybrid-tp"),
    *("laplace", "points", "ldp-fl", "duchi-vector", "gaussian", "best"),
    *("privunit", "privunit-projected", "multivariate-laplace", "random-projection", "random-projection-exact"),
)
LABELS = ("label-rr", "label-laplace")
MODELS = {
    "regression": ("linear-rounds", "linear-once"),
    "classification": ("logistic-rounds", "logistic-once", "discriminant"),
}
GUARANTEED = {
    "rows of numbers": FEATURES,
    "categories": (*CATEGORIES, "best-categories"),
    "tables with a --schema": ("table",),
    "labels": LABELS,
    "labels as vectors": ("label-laplace-vector",),
    "several labels": ("label-matrix",),
    "targets": ("target-bins", "target-unbiased-bins", "target-best"),
    "regressions": MODELS["regression"],
    "classifications": MODELS["classification"],
    "moments": ("moments",),
}
# Names of values in help; other values of options are VALUE.
VALUES = {"bounds": "BOUNDS", "target_bounds": "LOW,HIGH", "columns": "NAMES", "mechanism": "NAMES", "missing": "TEXTS"}
VALUES |= {"schema": "SCHEMA", "epsilons": "NUMBERS", "pairs": "COLUMNS", "unit": "UNIT", "half_width": "WIDTH"}
VALUES |= {"secret": "PATH", "expires": "TIME", "where": "FILTER"}

_WIDTH, _COLUMN = 76, 25


def epilog(*examples: str, names: Mapping[str, Iterable[str]] | None = None) -> str:
    """Return the end of a help text: names in columns under their headings, and examples."""
    blocks = [[f"{heading.capitalize()}:", *_in_columns(list(some))] for heading, some in (names or {}).items()]
    blocks.append(["Examples:", *(f"  {one}" for one in examples)])
    # The mark keeps the lines of a block.
    return "\n\n".join("\b\n" + "\n".join(lines) for lines in blocks)


def _in_columns(names: list[str]) -> list[str]:
    n = _WIDTH // _COLUMN
    return ["  " + "".join(one.ljust(_COLUMN) for one in names[i : i + n]).rstrip() for i in range(0, len(names), n)]
