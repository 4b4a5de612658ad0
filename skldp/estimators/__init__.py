"""Floor 3: scikit-learn estimators over the mechanisms and the accounting."""
