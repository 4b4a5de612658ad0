"""How an estimator looks among others in scikit-learn's diagrams, as far as those can be told: all of it is here.

scikit-learn asks an estimator for its box by ``_sk_visual_block_`` and for the address of its page by
``_get_doc_link``. Neither is public: where a version asks for something else, its own picture is what is left.
"""

from functools import cache
from importlib import metadata
from types import SimpleNamespace
from typing import Any

__all__ = ["DocumentedMixin", "box", "documentation"]


@cache
def documentation() -> str:
    """The address at which the installed package says that its documentation is, or ""."""
    try:
        declared = metadata.metadata("skldp").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return ""
    return dict(entry.split(", ", 1) for entry in declared).get("Documentation", "").rstrip("/")


class DocumentedMixin:
    """Mix-in of the estimators that have a page in the reference, before ``BaseEstimator`` among the bases."""

    def _get_doc_link(self) -> str:
        # A class that somebody derives has no page here.
        known = documentation() if type(self).__module__.startswith("skldp.") else ""
        return known and f"{known}/reference/generated/skldp.{type(self).__name__}.html"


def box(estimator: Any, caption: str) -> Any:
    """The box of an estimator with a line below its name; of one that holds others, above theirs.

    Parameters
    ----------
    estimator : estimator
    caption : str

    Returns
    -------
    object
        What scikit-learn takes for a block.

    Examples
    --------
    >>> from skldp import LabelRR
    >>> from skldp.estimators._diagram import box
    >>> box(LabelRR(), "epsilon 1 per label").kind
    'single'
    """
    name = type(estimator).__name__
    own = _block("single", estimator, name, str(estimator), caption)
    held = {
        key: part
        for key, part in estimator.get_params(deep=False).items()
        if hasattr(part, "get_params") and hasattr(part, "fit") and not isinstance(part, type)
    }
    if not held:
        return own
    names = [f"{key}: {type(part).__name__}" for key, part in held.items()]
    parts = _block("parallel", list(held.values()), names, [str(part) for part in held.values()])
    return _block("serial", [own, parts], [None, None], [None, None])


def _block(kind: str, estimators: Any, names: Any, details: Any, caption: str | None = None) -> Any:
    block = SimpleNamespace(
        kind=kind,
        estimators=estimators,
        names=names,
        name_details=details,
        name_caption=caption,
        doc_link_label=None,
        dash_wrapped=False,
    )
    block._sk_visual_block_ = lambda: block
    return block
