"""What a notebook shows of a fitted estimator: scikit-learn's own picture, and under it the guarantee."""

import html

import numpy as np
from sklearn.exceptions import NotFittedError

from skldp.exceptions import ChangedAfterFitError

__all__ = ["KeepsPromise", "ShowsGuarantee"]


class KeepsPromise:
    """Mix-in whose ``privacy_guarantee_`` is refused once a parameter that it depends on was changed.

    Setting ``privacy_guarantee_`` in ``fit`` remembers the parameters as they are. Whatever releases something calls
    ``_check_promise`` first. Parameters in ``_may_change`` have no influence on what is released.
    """

    _may_change = frozenset({"n_jobs", "verbose"})

    @property
    def privacy_guarantee_(self):
        """What was promised at fit.

        Raises
        ------
        ChangedAfterFitError
            If a parameter was changed since.
        sklearn.exceptions.NotFittedError
            If it is not fitted, or the last fit failed. It is an AttributeError, too.
        """
        self._check_promise()
        return self._promise[0]

    @privacy_guarantee_.setter
    def privacy_guarantee_(self, guarantee):
        self._promise = (guarantee, self._parameters_of_the_law())

    def _forget_promise(self):
        """What a fit does first that sets one thing after the other: where it fails, they belong to no one law."""
        vars(self).pop("_promise", None)

    def _parameters_of_the_law(self):
        """The parameters that what is released depends on, by name."""
        parameters = self.get_params(deep=False)  # type: ignore[attr-defined]  # of BaseEstimator, beside it
        return {name: value for name, value in parameters.items() if name not in self._may_change}

    def _check_promise(self):
        """Refuse to go on without a fit, or with parameters other than those of fit."""
        if "_promise" not in vars(self):
            raise NotFittedError(
                f"This {type(self).__name__} has no privacy_guarantee_ before a fit, nor after one that failed."
            )
        before, now = self._promise[1], self._parameters_of_the_law()
        changed = sorted(
            name for name in before.keys() | now.keys() if not _same(before.get(name, before), now.get(name, now))
        )
        if changed:
            raise ChangedAfterFitError(
                f"What {type(self).__name__} releases, and its guarantee, are fixed at fit: fit it again. "
                f"Got {', '.join(changed)} changed after fit instead."
            )


def _same(before, now):
    if before is now:
        return True
    if type(before) is not type(now):
        return False
    if isinstance(before, np.ndarray):
        return before.dtype == now.dtype and np.array_equal(before, now)
    if isinstance(before, list | tuple):
        return len(before) == len(now) and all(map(_same, before, now))
    # What compares in another way than yes or no (a frame) is taken as changed.
    equal = before == now
    return isinstance(equal, bool | np.bool_) and bool(equal)


class ShowsGuarantee(KeepsPromise):
    """Mix-in that puts the privacy guarantee under scikit-learn's picture of an estimator, once it is fitted.

    It stands before scikit-learn's ``BaseEstimator`` among the bases, and adds to what that gives through IPython's
    two display methods. What is not fitted, or shown as text (``sklearn.set_config(display="text")``), is left as it
    is.

    Examples
    --------
    >>> from skldp import LabelRR
    >>> label_rr = LabelRR(epsilon=1.0, classes=["no", "yes"])
    >>> "Privacy guarantee" in label_rr._repr_html_()
    False
    >>> "Privacy guarantee" in label_rr.fit(["no", "yes"])._repr_html_()
    True
    """

    @property
    def _repr_html_(self):
        # A property, as scikit-learn's: it raises AttributeError where the estimator is to be shown as text.
        draw = super()._repr_html_  # type: ignore[misc]  # of BaseEstimator, beside it among the bases
        return lambda: draw() + _guarantee_html(self)

    def _get_fitted_attr_html(self, *args, **kwargs):
        # Where scikit-learn shows fitted attributes: what was learnt from people is kept, and not shown.
        shown = super()._get_fitted_attr_html(*args, **kwargs)  # type: ignore[misc]  # as above
        for name in ("classes_", "categories_"):
            shown.pop(name, None)
        return shown

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]  # as above
        if "text/html" in bundle:
            bundle["text/html"] += _guarantee_html(self)
        return bundle


def _guarantee_html(estimator):
    try:
        guarantee = estimator.privacy_guarantee_
    except ChangedAfterFitError as error:
        return f'<div class="skldp-guarantee">No privacy guarantee: {html.escape(str(error))}</div>'
    except AttributeError:
        return ""
    return f'<div class="skldp-guarantee">{guarantee._repr_html_()}</div>'
