"""Warnings and errors of the package."""

__all__ = [
    "BudgetExhaustedError",
    "BudgetExhaustedWarning",
    "ChangedAfterFitError",
    "LearntDomainWarning",
    "LedgerError",
    "OutOfDomainWarning",
    "PrivacyGuaranteeWarning",
    "RepeatedReleaseWarning",
    "RowIdentityWarning",
    "SeededNoiseWarning",
    "TooFewPeopleWarning",
]


class PrivacyGuaranteeWarning(UserWarning):
    """A published calibration does not give the epsilon it states; both figures are in the text."""


class SeededNoiseWarning(UserWarning):
    """Noise comes from a seed: it is repeatable, and void for anyone who knows the seed."""


class OutOfDomainWarning(UserWarning):
    """Values outside the declared domain were moved into it; the text counts them."""


class LearntDomainWarning(UserWarning):
    """Classes or categories were learnt from private data; the text says how to declare them."""


class RowIdentityWarning(UserWarning):
    """Rows without ids count as separate people; two rows of one person are not protected together."""


class RepeatedReleaseWarning(UserWarning):
    """A task that is executed again releases its rows again; the text names the parameters that make it one release."""


class TooFewPeopleWarning(UserWarning):
    """Too few people for anything to be learnt at the epsilon; the text says how many it takes."""


class BudgetExhaustedWarning(UserWarning):
    """All people are refused; the text names the reason."""


class LedgerError(RuntimeError):
    """A privacy ledger cannot be used as asked; nothing was released."""


class BudgetExhaustedError(RuntimeError):
    """A person's privacy budget does not admit the release; nothing was released."""


class ChangedAfterFitError(ValueError, AttributeError):
    """A parameter that a release and its guarantee depend on was changed after fit; nothing was released.

    An AttributeError as well, as scikit-learn's NotFittedError is, so that ``hasattr`` returns False.
    """
