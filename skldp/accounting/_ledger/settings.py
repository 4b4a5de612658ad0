"""What a ledger is made with, checked, brought to what JSON keeps exactly, and read back."""

import json
from typing import Any, cast

from skldp.accounting._decide import RULES, Rule
from skldp.accounting._extrema.region import region_of
from skldp.accounting._ledger.records import damage
from skldp.mechanisms._columns import domain_from_json
from skldp.mechanisms._domain import Domain

__all__ = ["checked_bounds", "checked_settings", "declared_bounds"]


def checked_settings(epsilon: Any, bounds: Any, rule: Any, tol: Any, delta: Any) -> dict[str, Any]:
    """Check the parameters of a ledger.

    Raises
    ------
    ValueError
        If one breaks its rule.
    """
    if not isinstance(rule, str) or rule not in RULES:
        raise ValueError(f"rule must be one of {RULES}. Got {rule!r} instead.")
    if (delta is not None) != (rule == "approximate"):
        raise ValueError(
            f"delta goes with rule='approximate', and that with delta. Got {delta!r} and {rule!r} instead."
        )
    Rule(rule, epsilon, tol=tol, delta=delta)
    stored = None if bounds is None else checked_bounds(bounds)
    settings = {"epsilon": float(epsilon), "bounds": stored, "rule": str(rule), "tol": float(tol)}
    return settings | {"delta": None if delta is None else float(delta)}


def checked_bounds(bounds: Any) -> list[Any] | dict[str, Any]:
    """Two numbers, or two lists with one number per feature, or a domain by its fields: what JSON keeps exactly.

    Raises
    ------
    ValueError
        If they are no finite numbers with low <= high, are beyond 1e100, or no domain of answers.
    """
    region = region_of(bounds)
    if region.domain is not None and not region.is_box:
        return region.domain.to_dict()
    # Adding 0.0 turns -0.0 into 0.0. One and the same interval for all features is written once.
    box = region.box + 0.0
    same = bool((box == box[:, :1]).all())
    return cast("list[Any]", (box[:, 0] if same else box).tolist())


def declared_bounds(stored: Any) -> tuple[Any, Any] | Domain | None:
    """What a ledger's setting says of its domain."""
    if isinstance(stored, dict):
        with damage():
            return domain_from_json(json.dumps(stored))
    return None if stored is None else (stored[0], stored[1])
