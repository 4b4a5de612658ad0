"""The integer laws that a device samples, and the exact epsilon of each."""
