"""Transformers whose releases a ledger may charge: the methods of X that take people's ids."""

from typing import Any

from sklearn.base import TransformerMixin

from skldp.accounting._ledger.privacy_ledger import PrivacyLedger
from skldp.estimators._base import ReleasesRows
from skldp.estimators._validation import fit_context

__all__ = ["LEDGER", "ChargesLedger"]

LEDGER: list = [None, PrivacyLedger]


class ChargesLedger(ReleasesRows, TransformerMixin):
    """Mix-in of the transformers of X with a parameter `ledger`, before the one that they are otherwise.

    They have the hook ``_fit_rows(X)``, which declares the mechanism and gives the rows that it takes.
    """

    _fit_rows: Any

    def transform(self, X: Any, ids: Any = None) -> Any:
        """Release every row of X: with noise, or with ``transform_noise=False`` in the same encoding without it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The private rows.
        ids : array-like of int or str, shape (n_samples,), default=None
            Whose they are, nobody twice: needed with a `ledger`, and only then.

        Returns
        -------
        X_released : ndarray of shape (n_samples, n_features_out)

        Raises
        ------
        BudgetExhaustedError
            If the ledger refuses anybody: nothing is released then, and nobody charged.
        """
        return self._release_into(X, None, ids)

    @fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: Any = None, ids: Any = None) -> Any:
        """Fit, then release every row of X with noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The private rows.
        y : None
            Ignored.
        ids : array-like of int or str, shape (n_samples,), default=None
            Whose they are, nobody twice: needed with a `ledger`, and only then.

        Returns
        -------
        X_released : ndarray of shape (n_samples, n_features_out)

        Raises
        ------
        BudgetExhaustedError
            If the ledger refuses anybody: nothing is released then, and nobody charged.
        """
        return self._release(self._fit_rows(X), ids=ids)
