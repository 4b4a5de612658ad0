"""Declared columns, domains of records, and constraints between columns."""
