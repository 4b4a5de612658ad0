"""The data files of the benchmarks."""

from pathlib import Path


def existing(path):
    """Return the path of a data file; without it the benchmark ends, since another table has other figures."""
    if not Path(path).is_file():
        raise SystemExit(f"There is no data file {str(path)!r}, and nothing was run.")
    return Path(path)
