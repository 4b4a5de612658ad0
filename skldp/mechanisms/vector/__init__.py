"""Mechanisms for vectors: multivariate Laplace, PrivUnit, random projections, and their error bounds."""
