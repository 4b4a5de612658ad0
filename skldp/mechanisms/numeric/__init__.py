"""Numbers in bounds: the two- and three-valued mechanisms, the Piecewise family, hybrids, Laplace and Gaussian."""
