"""Scikit-learn estimators over mechanisms, ledgers and learning."""
