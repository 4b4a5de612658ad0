"""The pictures and the page of a study over many mechanisms."""
