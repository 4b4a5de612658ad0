"""Black-box lower bounds on epsilon, from outputs alone."""
