"""Central guarantees of shuffled reports."""
