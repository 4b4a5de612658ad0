"""Policies made from estimators, and estimates made from reports."""
