"""Floor 4: policies from estimators and back."""
