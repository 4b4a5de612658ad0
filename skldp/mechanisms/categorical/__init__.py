"""Labels and categories: randomized response, unary encodings, and estimates of frequencies."""
