"""What a notebook shows of a fitted estimator: scikit-learn's own picture, and under it the guarantee."""

import html

from skldp.estimators.promise import KeepsPromise
from skldp.exceptions import ChangedAfterFitError

__all__ = ["ShowsGuarantee"]


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
