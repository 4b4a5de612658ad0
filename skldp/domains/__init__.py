"""Declared columns: the possible records, and the constraints between columns."""
