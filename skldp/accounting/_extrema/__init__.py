"""Certified bounds on the realized loss: a sum of S-shaped functions, maximised and minimised over a box."""

from skldp.accounting._extrema.realized_loss import LossBounds, g_leakage_bound, realized_loss

__all__ = ["LossBounds", "g_leakage_bound", "realized_loss"]
