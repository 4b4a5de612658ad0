"""Floor 4: what privacy costs in utility."""
