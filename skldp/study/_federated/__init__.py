"""Federated learning of linear models, and what each way of perturbing it protects."""
