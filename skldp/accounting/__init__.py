"""Floor 2: many releases about one person."""
