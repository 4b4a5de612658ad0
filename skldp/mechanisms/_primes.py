"""Prime numbers and digits: of the hash functions of categories."""

import math

__all__ = ["is_prime", "number_of_digits"]


def is_prime(number: int) -> bool:
    """Whether a whole number is a prime, by division."""
    return number > 1 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))


def number_of_digits(n_codes: int, base: int) -> int:
    """How many digits to a base the codes below a number need.

    Examples
    --------
    >>> from skldp.mechanisms._primes import number_of_digits
    >>> number_of_digits(1024, 3), number_of_digits(9, 3), number_of_digits(1, 3)
    (7, 2, 0)
    """
    digits = 0
    while base**digits < n_codes:
        digits += 1
    return digits
