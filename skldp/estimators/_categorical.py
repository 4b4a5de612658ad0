"""CategoricalPrivatizer: columns of categories, released one-hot."""

from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skldp._arrays import kind_of
from skldp._checks import check_epsilon
from skldp._value_labels import value_labels
from skldp.domains._domain import Codes
from skldp.estimators._base import LEDGER, LocalTransformer
from skldp.estimators._class_codes import declared_values, encode
from skldp.estimators._guarantee_mixin import attach_guarantee
from skldp.estimators._schema import columns_of
from skldp.estimators._validation import (
    EPSILON,
    NOISE_PARAMETERS,
    Seed,
    StrOptions,
    as_table,
    input_names,
    validate_mixed,
)
from skldp.mechanisms._record import CategoricalRecord, number_of_sampled_columns
from skldp.mechanisms.categorical._frequency import FrequencyEstimate, estimate_frequencies
from skldp.mechanisms.categorical._one_hot import CATEGORICAL_MECHANISMS

if TYPE_CHECKING:
    from skldp.accounting.ledger._privacy_ledger import PrivacyLedger


class CategoricalPrivatizer(LocalTransformer):
    r"""Release columns of categories one-hot, under local differential privacy.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) of one record, all its columns together: split equally over the released columns that have
        at least two categories.
    mechanism : {"krr", "sue", "oue", "subset", "hashing", "hadamard", "best"}, default="krr"
        ``"krr"``: randomized response, one 1 per column. ``"sue"`` (RAPPOR's) and ``"oue"``: one noisy bit per
        category, better for more than about :math:`3 e^\varepsilon + 2` categories. ``"subset"``: about one in
        :math:`e^\varepsilon + 1` categories, at least one; no worse than ``"krr"`` and ``"oue"``, but slower for
        hundreds. ``"hashing"``: the categories of one bucket of a linear hash function, for very many categories;
        nearly as good as ``"subset"``. ``"hadamard"``: about half of the categories, for small epsilon. ``"best"``:
        for each column the shortest report among those within 1.05 times the least variance.
    categories : "auto" or list of array-like, default="auto"
        Declared categories of each column, from public knowledge. ``"auto"`` learns them at fit, with a warning and an
        infinite guarantee.
    n_sampled_features : "auto", "all" or int, default="all"
        Number of columns released per row, chosen uniformly for each row and independently of its values; columns of
        one category are not counted. Each has an equal share of epsilon. ``"auto"`` has the least predicted error of
        means and frequencies, from the domains alone. ``"all"`` keeps what columns have in common, for models.
    transform_noise, seed, ledger : optional
        As for :class:`BitRandTransformer`.

    Attributes
    ----------
    categories_ : list of ndarray
        The categories of each column, sorted where they can be.
    mechanism_ : CategoricalRecord
        Sampled mechanism.
    n_sampled_features_ : int
        Number of columns released per row.
    privacy_guarantee_ : PrivacyGuarantee
        Exact, per record; infinite where the categories were learnt.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if X of `fit` has names.

    Raises
    ------
    ValueError
        If a parameter is out of range, or a value is not among its column's categories; nothing is released then.

    Warns
    -----
    LearntDomainWarning
        If ``categories="auto"``.

    See Also
    --------
    LabelRR : The same for labels.

    Notes
    -----
    Columns are released independently, so their exact epsilons add up. All bits of a column that was not asked are the
    mean bit under uniform categories, :math:`(p + (k - 1) q) / k`, which is neither 0 nor 1.

    References
    ----------
    Wang, Blocki, Li and Jha, "Locally differentially private protocols for frequency estimation", USENIX Security
    2017; Ye and Barg, "Optimal schemes for discrete distribution estimation under locally differential privacy", IEEE
    Transactions on Information Theory 2018.

    Examples
    --------
    >>> from skldp import CategoricalPrivatizer
    >>> privatizer = CategoricalPrivatizer(epsilon=2.0, categories=[["blue", "red"], [1, 2, 3]])
    >>> released = privatizer.fit_transform([["red", 1], ["blue", 3]])
    >>> released.shape, released.sum(axis=1).tolist()
    ((2, 5), [2.0, 2.0])
    >>> privatizer.get_feature_names_out().tolist()
    ['x0_blue', 'x0_red', 'x1_1', 'x1_2', 'x1_3']
    >>> [estimate.frequencies.shape for estimate in privatizer.estimate_frequencies(released)]
    [(2,), (3,)]
    """

    _parameter_constraints: dict = {
        "epsilon": EPSILON,
        "mechanism": [StrOptions({*CATEGORICAL_MECHANISMS, "best"})],
        "categories": [StrOptions({"auto"}), list, tuple],
        "n_sampled_features": [StrOptions({"auto", "all"}), Integral],
        "transform_noise": ["boolean"],
        "seed": NOISE_PARAMETERS["seed"],
        "ledger": LEDGER,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        mechanism: Literal["krr", "sue", "oue", "subset", "hashing", "hadamard", "best"] = "krr",
        categories: Any = "auto",
        n_sampled_features: int | Literal["auto", "all"] = "all",
        transform_noise: bool = True,
        seed: Seed = None,
        ledger: "PrivacyLedger | None" = None,
    ) -> None:
        self.epsilon = epsilon
        self.mechanism = mechanism
        self.categories = categories
        self.n_sampled_features = n_sampled_features
        self.transform_noise = transform_noise
        self.seed = seed
        self.ledger = ledger

    def estimate_frequencies(
        self, X_released: Any, *, of: Literal["sample", "population"] = "sample"
    ) -> FrequencyEstimate | list[FrequencyEstimate]:
        """Estimate without bias how often each true category occurs, from released rows.

        Parameters
        ----------
        X_released : array-like of shape (n_samples, n_features_out)
            Rows released with noise.
        of : {"sample", "population"}, default="sample"
            Whether standard errors refer to these people or to the population that they are a random sample of.

        Returns
        -------
        list of FrequencyEstimate
            One for each column, with `frequencies`, `standard_errors` and `categories`. Frequencies are not clipped,
            because clipping would bias them.
        """
        check_is_fitted(self)
        record, found = self.mechanism_, []
        released = as_table(X_released, "X_released")
        asked = self._asked(released)
        if asked is None:
            raise ValueError(
                f"X_released must hold zeros and ones in {record.n_outputs} columns, as returned by transform, and the "
                f"mean bit in columns that were not asked; got {kind_of(X_released)}."
            )
        for part, place, own, categories in zip(record.parts, record.places, asked.T, self.categories_, strict=True):
            counts, n = released[own, place].sum(axis=0), int(own.sum())
            found.append(estimate_frequencies(counts, n, part.p, part.q, of, categories, n_people=len(own)))
        return found

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the released columns: the column's name, an underscore, the category.

        Parameters
        ----------
        input_features : array-like of str, default=None
            None takes ``feature_names_in_``, or x0, x1, ...
        """
        check_is_fitted(self)
        names = input_names(self, input_features)
        columns = zip(names, map(value_labels, self.categories_), strict=True)
        return np.array([f"{name}_{label}" for name, labels in columns for label in labels], dtype=object)

    def _asked(self, released):
        """Return which columns each row was asked, shape (n_samples, n_features); None for other rows."""
        record = self.mechanism_
        if released.shape[1] != record.n_outputs:
            return None
        bits = np.isin(released, (0, 1))
        asked = bits[:, [place.start for place in record.places]]
        sizes = [part.n_outputs for part in record.parts]
        fits = (bits == np.repeat(asked, sizes, axis=1)) & (bits | np.isclose(released, self._mean_bits, atol=1e-6))
        n_sampled = len(record.sampled_from) if record.n_sampled is None else record.n_sampled
        as_many = asked[:, record.sampled_from].sum(axis=1) == n_sampled
        return asked if fits.all() and as_many.all() else None

    @property
    def _mean_bits(self):
        """Mean of each bit under uniform categories, which stands for a column that was not asked."""
        return np.repeat([part.mean_bit for part in self.mechanism_.parts], self.mechanism_.sizes)

    def _release(self, rows, out=None, *, noisy=True, **how):
        released = super()._release(rows, out, noisy=noisy, **how)
        if noisy and self.mechanism_.n_sampled is not None:
            np.copyto(released, self._mean_bits, where=released < 0, casting="same_kind")
        return released

    def _can_be_written_to(self, dtype):
        # Mean bits are no integers.
        is_sampled = self.mechanism_.n_sampled is not None
        return np.can_cast(np.float64, dtype, "same_kind") if is_sampled else super()._can_be_written_to(dtype)

    def _fit_rows(self, X):
        """Set the fitted attributes, and return the codes of X."""
        self._forget_guarantee()
        check_epsilon(self.epsilon)
        columns = columns_of(validate_mixed(self, X, reset=True))
        names = input_names(self)
        learnt = isinstance(self.categories, str)
        if not learnt and len(self.categories) != len(columns):
            raise ValueError(
                f"categories must have one list for each of the {len(columns)} columns; got {kind_of(self.categories)}."
            )
        listed = zip([_distinct(column) for column in columns] if learnt else self.categories, names, strict=True)
        categories = [declared_values(values, f"categories of column {name}") for values, name in listed]
        codes = self._codes(columns, categories)
        sizes = tuple(values.size for values in categories)
        named = self.n_sampled_features, [Codes((size,)) for size in sizes]
        n_sampled = number_of_sampled_columns(*named, float(self.epsilon), (self.mechanism,) * len(sizes))
        self.mechanism_ = CategoricalRecord(float(self.epsilon), sizes, self.mechanism, n_sampled=n_sampled)
        self.n_sampled_features_ = n_sampled or len(sizes)
        self.categories_ = categories
        attach_guarantee(
            self, self.mechanism_.guarantee(), "the categories" if learnt else "", "categories=[[...], ...]"
        )
        return codes

    def _rows(self, X, *, reset):
        return self._codes(columns_of(validate_mixed(self, X, reset=reset)), self.categories_)

    def _empty_release(self, n_rows, dtype):
        return np.empty((n_rows, self.mechanism_.n_outputs))

    def _codes(self, columns, categories):
        named = zip(columns, categories, input_names(self), strict=True)
        return np.column_stack([encode(column, values, f"Column {name}") for column, values, name in named])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _distinct(column):
    try:
        return np.unique(column)
    except TypeError:
        return np.array(list(dict.fromkeys(column.tolist())), dtype=object)
