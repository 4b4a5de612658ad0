"""Certified bounds on the realized loss: a sum of S-shaped functions, maximised and minimised over a box."""
