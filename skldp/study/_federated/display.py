"""The picture of a federated study: test accuracy or AUC over epsilon, on the axis that one chooses."""

import math

from skldp.study._curve_result import draw_epsilon_axis

__all__ = ["EPSILON_AXES", "plot_federated"]

EPSILON_AXES = {
    "published": ("published_epsilon", "epsilon as the papers count it"),
    "exact": ("exact_epsilon", "exact local epsilon of the whole training"),
    "shuffled": ("shuffled_epsilon", "central epsilon behind a trusted shuffler"),
}
_METRICS = {"accuracy": "test accuracy", "auc": "test AUC"}
_STYLES = {
    "nothing": ("d", "-."),
    "features": ("o", "-"),
    "gradients": ("s", "--"),
    "anonymised gradients": ("v", ":"),
    "anonymised coordinates": ("^", ":"),
}


def plot_federated(table, *, metric="accuracy", epsilon_axis="published", ax=None):
    """Draw a federated study.

    Parameters
    ----------
    table : FederatedTable
    metric : {"accuracy", "auc"}, default="accuracy"
    epsilon_axis : {"published", "exact", "shuffled"}, default="published"
        A setting without that epsilon is left out; "exact" is what is guaranteed.
    ax : matplotlib Axes, default=None
        None makes a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If `metric` or `epsilon_axis` is none of these.
    ImportError
        If matplotlib is missing.
    """
    if metric not in _METRICS:
        raise ValueError(f"metric must be one of {tuple(_METRICS)}. Got {metric!r} instead.")
    if epsilon_axis not in EPSILON_AXES:
        raise ValueError(f"epsilon_axis must be one of {tuple(EPSILON_AXES)}. Got {epsilon_axis!r} instead.")
    if ax is None:
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError('A picture needs matplotlib: pip install "skldp[study]".') from None
        ax = plt.subplots(layout="constrained")[1]
    column, label = EPSILON_AXES[epsilon_axis]
    for name in dict.fromkeys(row.setting for row in table):
        rows = [row for row in table if row.setting == name]
        scores = [getattr(row, f"{metric}_mean") for row in rows]
        if math.isinf(rows[0].epsilon):
            ax.axhline(scores[0], color="0.4", linewidth=1, label=name)
            continue
        places = [getattr(row, column) for row in rows]
        if not any(math.isfinite(place) for place in places):
            continue
        marker, line = _STYLES[rows[0].perturbs]
        spread = [getattr(row, f"{metric}_std") for row in rows]
        ax.errorbar(places, scores, spread, marker=marker, linestyle=line, markersize=4, capsize=2, label=name)
    draw_epsilon_axis(ax)
    ax.set_xlabel(label)
    ax.set_ylabel(_METRICS[metric])
    ax.legend(fontsize="x-small")
    return ax
