"""NumericPrivatizer: numbers within bounds, by a mechanism chosen by name."""

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal

from sklearn.base import OneToOneFeatureMixin

from skldp.estimators._base import LEDGER, LocalTransformer
from skldp.estimators._validation import BOUNDS_BY_COLUMN, NumberRange, Seed, StrOptions
from skldp.mechanisms.numeric._bounded_features import (
    NUMERIC_MECHANISMS,
    BoundedFeatures,
    best_mechanism,
    make_mechanism,
    number_of_sampled_features,
)
from skldp.mechanisms.numeric._points import checked_weights

if TYPE_CHECKING:
    from skldp.accounting.ledger._privacy_ledger import PrivacyLedger


class NumericPrivatizer(OneToOneFeatureMixin, LocalTransformer):
    r"""Release numbers within declared bounds, unbiased, through a mechanism chosen by name.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) of one record, all its features together.
    mechanism : str, default="hybrid"
        - ``"duchi"``: one of two values; the best for small epsilon;
        - ``"three_outputs"``: one of three values;
        - ``"piecewise"``, ``"piecewise_sub"``, ``"piecewise_opt"``: near the value, or anywhere in a range;
        - ``"square_wave"``: the same, suited to estimating distributions;
        - ``"hybrid"``: Piecewise or Duchi, by chance; ``"hybrid_tp"``: PM-SUB or Three-Outputs;
        - ``"laplace"``: exact discrete Laplace noise;
        - ``"ldp_fl"``: Duchi around a public centre, which is the middle of `bounds`, so the same as ``"duchi"``;
        - ``"duchi_vector"``: all features together, one sign each;
        - ``"gaussian"``: exact discrete Gaussian noise, all features together; it needs `delta`;
        - ``"privunit"``: at least two features together, as a vector of the ball around their box; the least variance
          from an epsilon of about 2 on. Its guarantee is proved for real numbers, as that of
          :class:`PrivUnitTransformer`; devices sample it among random directions, at an exact epsilon;
        - ``"points"``: the law of least squared error for one number, by a linear program (seconds at large epsilon,
          once in a process); its answers identify neither squares nor distributions;
        - ``"best"``: the one with the least variance of a feature in units of its half-width, as `objective` says.
    bounds : (low, high), default=(-1, 1)
        Declared domain, each end a number or one number per feature; also a dict of pairs by column name, or a list of
        one pair per feature. Values outside are clipped.
    objective : {"worst", "mean"} or array-like of shape (n_bins,), default="worst"
        Which variance ``"best"`` and ``"points"`` make least: the largest over all values, the mean over evenly spread
        ones, or the mean under a declared prior: weights of at most 64 equal bins of each feature's bounds.
    delta : float, default=0.0
        Above 0 for the Gaussian (and for ``"best"`` if the Gaussian is to be among its candidates), else 0.
    n_sampled_features : "auto", "all" or int, default="auto"
        Number of features released per row, sampled for each row. Each has its share of epsilon and is scaled up; the
        others become the middle of their bounds. ``"auto"`` is about one for each 2.5 of epsilon, with the smaller
        variance, and all for ``"duchi_vector"``, ``"gaussian"`` and ``"privunit"``.
    transform_noise, seed, n_jobs, ledger : optional
        As for :class:`BitRandTransformer`.

    Attributes
    ----------
    mechanism_ : BoundedFeatures
        The sampled law, with its exact `variance`, `bias` and `worst_variance`.
    mechanism_name_ : str
        Name of the mechanism, as chosen by ``"best"``.
    n_sampled_features_ : int
        Number of features released per row.
    privacy_guarantee_ : PrivacyGuarantee
        Exact, from the sampled integers.
    bounds_ : tuple of two ndarrays of shape (n_features,)
        Lower and upper bounds.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if X of `fit` has names.

    Raises
    ------
    ValueError
        If delta is missing or not applicable, the objective is no weights or the mechanism has none, more features are
        sampled than X has, bounds have the wrong length, or epsilon is too small for the mechanism.

    Notes
    -----
    Feature j with centre :math:`c_j` and half-width :math:`r_j` is released as
    :math:`c_j + r_j \frac{d}{k} M((x_j - c_j) / r_j)` where it is one of the k sampled of d, and as :math:`c_j` else,
    which has the mean :math:`x_j`.

    References
    ----------
    Wang et al., "Collecting and analyzing multidimensional data with local differential privacy", ICDE 2019; Zhao et
    al., "Local differential privacy based federated learning for Internet of Things", 2020; Canonne, Kamath and
    Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020; Asi, Feldman and Talwar, "Optimal
    algorithms for mean estimation under local differential privacy", ICML 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import NumericPrivatizer
    >>> X = np.random.default_rng(0).uniform(0, 16, (5000, 4))
    >>> privatizer = NumericPrivatizer(epsilon=4.0, mechanism="best", bounds=(0, 16)).fit(X)
    >>> privatizer.mechanism_name_, privatizer.n_sampled_features_
    ('privunit', 4)
    >>> privatizer.transform(X).shape
    (5000, 4)
    """

    _parameter_constraints: dict = {
        **LocalTransformer._parameter_constraints,
        "bounds": BOUNDS_BY_COLUMN,
        "mechanism": [StrOptions({*NUMERIC_MECHANISMS, "best"})],
        "ledger": LEDGER,
        "objective": [StrOptions({"worst", "mean"}), "array-like"],
        "delta": [NumberRange(Real, 0, 1, closed="left")],
        "n_sampled_features": [StrOptions({"auto", "all"}), NumberRange(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        mechanism: str = "hybrid",
        bounds: Any = (-1, 1),
        objective: Any = "worst",
        delta: float = 0.0,
        n_sampled_features: int | Literal["auto", "all"] = "auto",
        transform_noise: bool = True,
        seed: Seed = None,
        n_jobs: int | None = None,
        ledger: "PrivacyLedger | None" = None,
    ) -> None:
        self.epsilon = epsilon
        self.mechanism = mechanism
        self.bounds = bounds
        self.objective = objective
        self.delta = delta
        self.n_sampled_features = n_sampled_features
        self.transform_noise = transform_noise
        self.seed = seed
        self.n_jobs = n_jobs
        self.ledger = ledger

    def _make_mechanism(self, X):
        n_features, epsilon, prior = X.shape[1], float(self.epsilon), self._prior()
        if self.mechanism == "best":
            self.mechanism_name_, mechanism, self.n_sampled_features_ = best_mechanism(
                epsilon,
                n_features,
                n_sampled=self.n_sampled_features,
                delta=self.delta,
                prior=prior,
                with_points=True,
            )
        else:
            self.mechanism_name_ = self.mechanism
            self.n_sampled_features_ = number_of_sampled_features(
                self.n_sampled_features, self.mechanism, epsilon, n_features, prior
            )
            mechanism = make_mechanism(self.mechanism, epsilon, self.n_sampled_features_, self.delta, prior)
        low, high = (tuple(end.tolist()) for end in self.bounds_)
        return BoundedFeatures(mechanism, low, high, n_sampled=self.n_sampled_features_, stated=epsilon)

    def _prior(self) -> tuple[float, ...]:
        """Return the weights of the bins of the bounds, none for the worst case."""
        is_worst = isinstance(self.objective, str) and self.objective == "worst"
        if is_worst:
            return ()
        if self.mechanism not in ("best", "points"):
            rule = "An objective other than 'worst' needs mechanism 'best' or 'points'"
            raise ValueError(f"{rule}; got {self.mechanism!r}.")
        weights = checked_weights((1.0,) if isinstance(self.objective, str) else self.objective)
        if not weights:
            raise ValueError(f"objective must have weights of at least one bin; got {self.objective!r}.")
        return weights
