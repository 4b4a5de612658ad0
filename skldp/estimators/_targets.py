"""TargetPrivatizer: regression targets, released one by one."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted, column_or_1d

from skldp._arrays import as_numbers, kind_of
from skldp._checks import check_epsilon
from skldp.estimators._base import TargetTransformer, check_bounds_of_type
from skldp.estimators._guarantee_mixin import attach_guarantee
from skldp.estimators._validation import (
    BOUNDS,
    EPSILON,
    FLOATS,
    NOISE_PARAMETERS,
    InvalidParameterError,
    Seed,
    StrOptions,
    check_bounds,
    check_finite,
    check_numbers,
)
from skldp.mechanisms.numeric._bounded_features import (
    JOINT_MECHANISMS,
    NUMERIC_MECHANISMS,
    BoundedFeatures,
    best_mechanism,
    make_mechanism,
)
from skldp.mechanisms.numeric._points import ResponseOnBins

_ON_BINS = {"bins": False, "unbiased_bins": True}
_ALONE = set(NUMERIC_MECHANISMS) - set(JOINT_MECHANISMS)
# check_bounds refuses larger bounds, and its error would show learnt ones.
_LARGEST_LEARNT = 1e60


class TargetPrivatizer(TargetTransformer, auto_wrap_output_keys=None):
    r"""Release regression targets within declared bounds through a mechanism for one number.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) of one target.
    bounds : (low, high), default=None
        Declared bounds of a target, from public knowledge; values outside are clipped. None learns them from y, with a
        warning and an infinite guarantee.
    mechanism : str, default="unbiased_bins"
        - ``"unbiased_bins"``: randomized response on knots, to which a number is rounded at random; unbiased, with the
          least variance under the prior;
        - ``"bins"``: randomized response on bins, as published, with the least expected squared error of one answer
          under the prior; biased towards the middle, for any number of people;
        - ``"duchi"``, ``"three_outputs"``, ``"piecewise"``, ``"piecewise_sub"``, ``"piecewise_opt"``,
          ``"square_wave"``, ``"hybrid"``, ``"hybrid_tp"``, ``"laplace"``, ``"ldp_fl"``: as for
          :class:`NumericPrivatizer`, unbiased;
        - ``"best"``: the one of the latter with the least worst-case variance.
    prior : array-like of shape (n_parts,), default=None
        For bins: public probabilities of equal parts of the bounds. None is uniform.
    seed : None, int, Generator or RandomState, default=None
        None draws secure noise in every call. Any other value repeats noise, for tests, and voids the guarantee.

    Attributes
    ----------
    mechanism_ : ResponseOnBins or BoundedFeatures
        The sampled law.
    mechanism_name_ : str
        Name of the mechanism, as chosen by ``"best"``.
    prior_ : ndarray of shape (n_parts,) or None
        The public prior of the bins.
    bounds_ : tuple of two floats
        Lower and upper bound.
    privacy_guarantee_ : PrivacyGuarantee
        Exact, per label; infinite if the bounds were learnt.

    Raises
    ------
    ValueError
        If a parameter is out of range, `prior` is given for a mechanism without bins, or y is not a column of finite
        numbers.

    Warns
    -----
    LearntDomainWarning
        If `bounds` is None.
    OutOfDomainWarning
        Reports the number of clipped targets.

    See Also
    --------
    LabelPrivateRegressor : A regressor that is trained on such targets.
    LabelRR : The same for classes.

    Notes
    -----
    ``TransformedTargetRegressor(regressor, transformer=TargetPrivatizer(...), check_inverse=False)`` trains on released
    targets; with ``check_inverse=True`` it releases some of them twice.

    References
    ----------
    Ghazi, Kamath, Kumar, Leeman, Manurangsi, Varadarajan and Zhang, "Regression with label differential privacy", ICLR
    2023. Badanidiyuru, Ghazi, Kamath, Kumar, Leeman, Manurangsi, Varadarajan and Zhang, "Optimal unbiased randomizers
    for regression with label differential privacy", NeurIPS 2023.

    Examples
    --------
    >>> from skldp import TargetPrivatizer
    >>> ages = TargetPrivatizer(epsilon=2.0, bounds=(0, 100), mechanism="bins", prior=[0.1, 0.4, 0.3, 0.2])
    >>> ages.fit_transform([20.0, 35.0, 62.0, 81.0]).shape
    (4,)
    >>> ages.mechanism_.answers.round(1).tolist()
    [38.0, 68.7]
    >>> print(ages.privacy_guarantee_.headline())
    epsilon 2 per label (stated 2); this step alone; for a pipeline use privacy_guarantee(pipeline)
    """

    _hidden_attributes = frozenset({"bounds_"})
    _parameter_constraints: dict = {
        "epsilon": EPSILON,
        "bounds": [*BOUNDS, None],
        "mechanism": [StrOptions({*_ON_BINS, *_ALONE, "best"})],
        "prior": ["array-like", None],
        "seed": NOISE_PARAMETERS["seed"],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bounds: Any = None,
        mechanism: str = "unbiased_bins",
        prior: npt.ArrayLike | None = None,
        seed: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.mechanism = mechanism
        self.prior = prior
        self.seed = seed

    def inverse_transform(self, y: Any) -> np.ndarray:
        """Return released targets, or predictions of them, unchanged: they are in the units of y.

        Parameters
        ----------
        y : array-like of shape (n_samples,) or (n_samples, 1)
            Released targets.
        """
        check_is_fitted(self)
        return self._rows(y, reset=False).reshape(np.asarray(y).shape)

    def _encoded(self, released, X, *, noisy=True):
        return released.reshape(np.shape(X))

    def _rows(self, X, *, reset):
        y = X
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        check_numbers(y, "y")
        column = np.asarray(y)
        column = column[:, 0] if column.ndim == 2 and column.shape[1] == 1 else column_or_1d(y, warn=True)
        if not column.size:
            raise ValueError("y must hold at least one number; got an empty y.")
        column = as_numbers(column, "y", column.dtype if column.dtype in FLOATS else np.float64)
        check_finite(column, "y")
        return column[:, None]

    def _declare(self, rows):
        check_epsilon(self.epsilon)
        epsilon, prior = float(self.epsilon), self.prior
        if prior is not None and self.mechanism not in _ON_BINS:
            raise InvalidParameterError(f"prior must be None for mechanism={self.mechanism!r}; got a prior.")
        learnt = self.bounds is None
        low, high = _learnt_bounds(rows) if learnt else (float(e[0]) for e in check_bounds(self.bounds, 1))
        check_bounds_of_type((low, high), rows.dtype)
        mechanism, self.mechanism_name_ = self._make_mechanism(epsilon, low, high, prior)
        guarantee = mechanism.guarantee()
        self.prior_ = None if getattr(mechanism, "prior", None) is None else np.array(mechanism.prior)
        self.bounds_, self.mechanism_ = (low, high), mechanism
        attach_guarantee(
            self, replace(guarantee, unit="label"), "the bounds of y" if learnt else "", "bounds=(low, high)"
        )

    def _make_mechanism(self, epsilon, low, high, prior):
        name = self.mechanism
        if name in _ON_BINS:
            public = None if prior is None else tuple(as_numbers(prior, "prior").reshape(-1).tolist())
            return ResponseOnBins(epsilon, low, high, public, _ON_BINS[name]), name
        if name == "best":
            name, unit, _ = best_mechanism(epsilon, 1)
        else:
            unit = make_mechanism(name, epsilon)
        return BoundedFeatures(unit, (low,), (high,), n_sampled=1, stated=epsilon), name

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        return tags


def _learnt_bounds(rows):
    """Return distinct bounds around the smallest and the largest number."""
    low, high = float(rows.min()), float(rows.max())
    if max(-low, high) > _LARGEST_LEARNT:
        raise ValueError(f"y must be at most {_LARGEST_LEARNT:.0e} in magnitude; got {kind_of(rows)} beyond it.")
    margin = 2.0**-20 * max(1.0, abs(low), abs(high))
    return (low, high) if high - low > margin else (low - margin, high + margin)
