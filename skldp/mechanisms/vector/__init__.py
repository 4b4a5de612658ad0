"""Mechanisms for vectors: multivariate Laplace, PrivUnit, random projections, and what is known of their errors."""
