"""Certified bounds on the realized loss, as extrema of a sum of S-shaped functions over a domain."""
