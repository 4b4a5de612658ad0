"""Black-box lower bounds on epsilon, from outputs alone."""

from skldp.study._audit.lower_bound import AuditResult, audit_epsilon, trials_needed

__all__ = ["AuditResult", "audit_epsilon", "trials_needed"]
