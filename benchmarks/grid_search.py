"""Time grid searches over epsilon beside those of pipelines without privacy, both in one process.

    python benchmarks/grid_search.py                       # this checkout
    PYTHONPATH=../other python benchmarks/grid_search.py   # another one, with this script

20 values and 5 folds of 2,000 x 20: the least processor time of 3 searches in turns, and the ratio.
"""

import time
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skldp


def seconds(search, X, y):
    """Processor time of a search."""
    start = time.process_time()
    search.fit(X, y)
    return time.process_time() - start


def main():
    warnings.simplefilter("ignore")
    rng, values = np.random.default_rng(0), np.geomspace(0.5, 16, 20)
    X = rng.uniform(-1, 1, (2_000, 20))
    y = np.clip(X @ rng.normal(size=20) / 5, -1, 1)
    pairs = {
        "linear": (skldp.PrivateLinearRegression(), make_pipeline(StandardScaler(), Ridge()), "ridge__alpha", y),
        "logistic": (
            skldp.PrivateLogisticRegression(classes=[0, 1]),
            make_pipeline(StandardScaler(), LogisticRegression()),
            "logisticregression__C",
            (y > 0).astype(int),
        ),
    }
    print(f"{'model':<10}{'private, s':>12}{'pipeline, s':>13}{'ratio':>8}")
    for name, (private, pipeline, parameter, target) in pairs.items():
        searches = GridSearchCV(private, {"epsilon": values}, cv=5), GridSearchCV(pipeline, {parameter: values}, cv=5)
        mine, other = np.min([[seconds(search, X, target) for search in searches] for _ in range(3)], axis=0)
        print(f"{name:<10}{mine:>12.2f}{other:>13.3f}{mine / other:>8.1f}")


if __name__ == "__main__":
    main()
