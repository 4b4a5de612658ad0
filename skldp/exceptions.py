"""Warnings and errors of the package."""

__all__ = [
    "BudgetExhaustedError",
    "LearntDomainWarning",
    "LedgerError",
    "OutOfDomainWarning",
    "PrivacyGuaranteeWarning",
    "SeededNoiseWarning",
]


class PrivacyGuaranteeWarning(UserWarning):
    """A published calibration does not give the epsilon it states; both figures are in the text."""


class SeededNoiseWarning(UserWarning):
    """Noise comes from a seed: repeatable, and no protection against whoever knows the seed."""


class OutOfDomainWarning(UserWarning):
    """Values outside the declared domain were moved into it; the text counts them."""


class LearntDomainWarning(UserWarning):
    """Classes or categories were learnt from private data; the text says how to declare them."""


class LedgerError(RuntimeError):
    """A privacy ledger cannot be used as asked; nothing was released."""


class BudgetExhaustedError(RuntimeError):
    """A person's privacy budget does not admit the release; nothing was released."""
