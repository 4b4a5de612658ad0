"""Result files: the measured tables of the documentation, each with the command that computed it."""

import csv
import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parents[1] / "docs" / "results"


def add_option(parser):
    """Add ``--save NAME``, which writes the table to ``docs/results/NAME.csv``."""
    parser.add_argument("--save", metavar="NAME", help="write the table to docs/results/NAME.csv")


def cell(scores):
    """Return the mean of some scores, its standard error, and the worst one in brackets."""
    mean, error = np.mean(scores), np.std(scores, ddof=1) / len(scores) ** 0.5 if len(scores) > 1 else np.nan
    return f"{mean:.3f} ± {error:.3f} [{min(scores):.3f}]"


def save(name, header, rows):
    """Write a table; its first line is the command, with file names in place of paths."""
    script = Path(sys.argv[0]).resolve().relative_to(FOLDER.parents[1])
    arguments = [Path(one).name if Path(one).is_file() else one for one in sys.argv[1:]]
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        file.write(f"# python {' '.join([script.as_posix(), *arguments])}\n")
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
