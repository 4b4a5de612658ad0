"""Labels and categories: randomized response, unary encodings, and what their answers say of frequencies."""
