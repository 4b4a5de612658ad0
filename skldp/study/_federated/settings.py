"""What is perturbed in federated learning, and how each way counts its epsilon."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from numbers import Integral
from operator import add
from typing import Any

import numpy as np
from sklearn.base import clone

from skldp.accounting._shuffle import shuffled, shuffled_closed_form
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._odds import product_above, split_epsilon
from skldp.mechanisms._rows import RowMechanism

__all__ = [
    "FederatedSetting",
    "features_perturbed",
    "gradients_anonymised",
    "gradients_perturbed",
    "labels_perturbed",
    "noiseless",
    "random_guess",
    "weights_anonymised",
]


# Numbers that an anonymiser mixes one by one.
_ONE_BY_ONE = ("anonymised coordinates", "anonymised weights")


def noiseless() -> "FederatedSetting":
    """Nothing is perturbed: the upper bound of every figure.

    Returns
    -------
    FederatedSetting
    """
    return FederatedSetting("noiseless", "nothing")


def random_guess() -> "FederatedSetting":
    """Nothing is used: scores are drawn without a look at anything, the lower bound of every figure.

    Returns
    -------
    FederatedSetting
    """
    return FederatedSetting("random guess", "everything")


def features_perturbed(
    mechanism: Any, *, label_mechanism: Any = None, name: str | None = None, n_rounds: int | None = None
) -> "FederatedSetting":
    """Every row's features are released once, before training.

    Parameters
    ----------
    mechanism : transformer with `epsilon`
        Its epsilon takes the values of the study.
    label_mechanism : label transformer, default=None
        Releases the labels once, at its own epsilon; None leaves them as they are.
    name : str, default=None
        None is the mechanism's own.
    n_rounds : int, default=None
        None takes the study's.

    Returns
    -------
    FederatedSetting

    Raises
    ------
    ValueError
        If the mechanism has no epsilon.
    """
    return _setting(name, "features", mechanism, label_mechanism, n_rounds)


def labels_perturbed(
    label_mechanism: Any, *, name: str | None = None, n_rounds: int | None = None
) -> "FederatedSetting":
    """The labels alone are released once; their mechanism's epsilon takes the values of the study.

    Parameters
    ----------
    label_mechanism : label transformer with `epsilon`
    name, n_rounds
        As in :func:`features_perturbed`.

    Returns
    -------
    FederatedSetting
    """
    _check_has_epsilon(label_mechanism)
    return FederatedSetting(name or _name(label_mechanism), "nothing", None, label_mechanism, n_rounds)


def gradients_perturbed(mechanism: Any, *, name: str | None = None, n_rounds: int | None = None) -> "FederatedSetting":
    r"""Every client's gradient is released in every round, each round with its share of the budget.

    Parameters
    ----------
    mechanism : transformer with `epsilon`
        Its epsilon is the study's divided by the rounds; how it divides that over the coordinates is its own affair.
    name, n_rounds
        As in :func:`features_perturbed`.

    Returns
    -------
    FederatedSetting

    Notes
    -----
    Of d coordinates clipped to plus or minus b, :class:`~skldp.PrivUnitTransformer` with a declared `norm` releases the
    gradient, shortened to that. Without one it releases where the gradient points, and the study takes it to be as long
    as a vector spread evenly over the box is, in the root of the mean square: :math:`b \sqrt{d / 3}`. That looks at no
    gradient. What is learnt from is then no unbiased gradient; but a norm that holds for all vectors of the box,
    :math:`b \sqrt d`, adds noise for gradients as long as hardly any is.
    """
    return _setting(name, "gradients", mechanism, None, n_rounds)


def gradients_anonymised(
    mechanism: Any, *, message: str = "coordinate", name: str | None = None, n_rounds: int | None = None
) -> "FederatedSetting":
    """Every message of every client is released with the whole budget, because an anonymiser mixes the clients'.

    As the papers count it, an anonymiser lets nothing accumulate from message to message. Each client's own loss does
    add up; a shuffler that is trusted gives every batch of messages a central guarantee, which adds up as well.

    Parameters
    ----------
    mechanism : transformer with `epsilon`
    message : {"coordinate", "gradient"}, default="coordinate"
        What is mixed with the other clients' on its own. "coordinate" (the BitRand paper's Table 2, and LDP-FL) lets
        nothing accumulate over coordinates and rounds, "gradient" (its Figs. 17 and 20) nothing over rounds.
    name, n_rounds
        As in :func:`features_perturbed`.

    Returns
    -------
    FederatedSetting

    Raises
    ------
    ValueError
        If the mechanism has no epsilon or `message` is neither.

    References
    ----------
    Sun, Qian and Chen, "LDP-FL: Practical private aggregation in federated learning with local differential privacy",
    IJCAI 2021. Feldman, McMillan and Talwar, "Hiding among the clones", FOCS 2021 (the closed form beside the exact
    figure, see :func:`skldp.accounting.shuffled`).
    """
    if message not in ("coordinate", "gradient"):
        raise ValueError(f"message must be 'coordinate' or 'gradient'. Got {message!r} instead.")
    return _setting(name, f"anonymised {message}s", mechanism, None, n_rounds)


def weights_anonymised(mechanism: Any, *, name: str | None = None, n_rounds: int | None = None) -> "FederatedSetting":
    """Every client takes one step from the common model and releases the weights it comes to, number by number.

    That is how LDP-FL describes it: each weight is released with the whole budget, over a fixed range around 0 that is
    the study's `gradient_bound`, an anonymiser mixes all clients', and the next model is their mean. Around the model
    that was handed out instead of 0, it would be :func:`gradients_anonymised` at that bound over the learning rate.

    Parameters
    ----------
    mechanism : transformer with `epsilon` and `bounds`
    name, n_rounds
        As in :func:`features_perturbed`.

    Returns
    -------
    FederatedSetting

    Raises
    ------
    ValueError
        If the mechanism has no epsilon.

    References
    ----------
    Sun, Qian and Chen, "LDP-FL: Practical private aggregation in federated learning with local differential privacy",
    IJCAI 2021, Equation 2.
    """
    return _setting(name, "anonymised weights", mechanism, None, n_rounds)


def _setting(
    name: str | None, perturbs: str, mechanism: Any, label_mechanism: Any, n_rounds: int | None
) -> "FederatedSetting":
    _check_has_epsilon(mechanism)
    return FederatedSetting(name or _name(mechanism), perturbs, mechanism, label_mechanism, n_rounds)


def _check_has_epsilon(mechanism: Any) -> None:
    if not hasattr(mechanism, "get_params") or "epsilon" not in mechanism.get_params(deep=False):
        raise ValueError(f"mechanism must be an estimator with a parameter epsilon. Got {mechanism!r} instead.")


def _name(mechanism: Any) -> str:
    kind = mechanism.get_params(deep=False).get("mechanism")
    return f"{type(mechanism).__name__}({kind})" if isinstance(kind, str) else type(mechanism).__name__


def _repeated(guarantee: PrivacyGuarantee, times: int, what: str) -> PrivacyGuarantee:
    """Basic composition of one guarantee with itself."""
    return replace(
        guarantee,
        epsilon=product_above(guarantee.epsilon, times),
        delta=min(1.0, product_above(guarantee.delta, times)),
        per_feature=None,
        stated=None,
        figures=(),
        basis=f"{times:,} {what}, each: {guarantee.basis}",
    )


@dataclass(frozen=True)
class Counted:
    """The same training's epsilon, counted in four ways."""

    local: PrivacyGuarantee
    published: float
    shuffled: PrivacyGuarantee | None = None
    closed_form: float = math.nan


@dataclass(frozen=True)
class FederatedSetting:
    """What is perturbed, by which mechanism. Make one with the functions of this module.

    Attributes
    ----------
    name : str
    perturbs : {"nothing", "everything", "features", "gradients", "anonymised gradients", "anonymised coordinates", \
            "anonymised weights"}
    mechanism : transformer or None
    label_mechanism : label transformer or None
    n_rounds : int or None
    """

    name: str
    perturbs: str
    mechanism: Any = None
    label_mechanism: Any = None
    n_rounds: int | None = None

    @property
    def unit(self) -> str:
        """Whose change the guarantee is about: one row of a client's data, its label, or all that a client holds."""
        if self.on_gradients:
            return "client"
        return "label" if self.mechanism is None and self.label_mechanism is not None else "record"

    @property
    def on_gradients(self) -> bool:
        """Whether it is the clients' gradients that are released, round by round."""
        return self.perturbs not in ("nothing", "everything", "features")

    @property
    def has_epsilon(self) -> bool:
        """Whether there is anything to vary."""
        return self.mechanism is not None or self.label_mechanism is not None

    def mechanisms(self, epsilon: float, seeds: Sequence[int | None] = (None, None)) -> list[Any]:
        """Give clones of both mechanisms, at `epsilon`, seeded where a seed is given and they have none."""
        given = [self.mechanism, self.label_mechanism]
        clones = [None if mechanism is None else clone(mechanism) for mechanism in given]
        varied = next((mechanism for mechanism in clones if mechanism is not None), None)
        if varied is not None:
            varied.set_params(epsilon=epsilon)
        for mechanism, seed in zip(clones, seeds, strict=True):
            if seed is not None and mechanism is not None:
                own = mechanism.get_params(deep=False)
                if own.get("seed", seed) is None:
                    mechanism.set_params(seed=seed)
        return clones

    def gradient_release(self, mechanism: Any, bound: float, n_rounds: int) -> "_GradientRelease":
        """Give a function that releases the gradients of all clients; it keeps the mechanism's guarantee."""
        changes = {
            "epsilon": split_epsilon(mechanism.epsilon, n_rounds) if self.perturbs == "gradients" else mechanism.epsilon
        }
        parameters = mechanism.get_params(deep=False)
        # A radius that was declared is in the gradients' own units.
        if "bounds" in parameters and "norm" not in parameters:
            changes["bounds"] = (-bound, bound)
        # Directions have no length of their own.
        size = bound / math.sqrt(3) if parameters.get("norm") == "unit" else None
        return _GradientRelease(mechanism.set_params(**changes), self.perturbs in _ONE_BY_ONE, size)

    def count_records(self, parts: list[PrivacyGuarantee]) -> Counted:
        """Count what was released once: the sum of the guarantees of features and labels."""
        if self.perturbs == "everything":
            return Counted(PrivacyGuarantee(0.0, basis="nothing is used"), 0.0)
        if not parts:
            return Counted(PrivacyGuarantee(math.inf, basis="nothing is perturbed"), math.inf)
        total = reduce(add, parts)
        if {part.unit for part in parts} == {"label"}:
            total = replace(total, basis=f"{total.basis}; features are not randomised")
        elif len(parts) == 1:
            total = replace(total, basis=f"{total.basis}; labels are not randomised")
        return Counted(total, total.epsilon if total.stated is None else total.stated)

    def count_gradients(
        self, release: "_GradientRelease", n_coordinates: int, n_rounds: int, n_clients: int, delta: float
    ) -> Counted:
        """Count a release of every client's gradient in every round."""
        once = release.guarantee
        if self.perturbs == "gradients":
            return Counted(_repeated(once, n_rounds, "rounds"), product_above(_stated(once), n_rounds))
        times, what = n_rounds, "rounds"
        if release.one_by_one:
            times, what = n_rounds * n_coordinates, "coordinates and rounds"
        count = Counted(_repeated(once, times, what), _stated(once))
        if once.delta or once.unit == "distance":
            return count
        mixed = replace(shuffled(release.law, n_clients, delta, rounds=times), seeded=once.seeded)
        try:
            closed_form = product_above(
                shuffled_closed_form(once.epsilon, n_clients, split_epsilon(delta, times)), times
            )
        except ValueError:
            closed_form = math.nan
        return replace(count, shuffled=mixed, closed_form=closed_form)


class _GradientRelease:
    guarantee: PrivacyGuarantee

    def __init__(self, mechanism: Any, one_by_one: bool, size: float | None = None) -> None:
        """With a size, what is released are directions, of vectors whose coordinates have that root mean square."""
        self.mechanism = mechanism
        self.one_by_one = one_by_one
        self.size = size
        seed = mechanism.get_params(deep=False).get("seed")
        self._seeds = np.random.default_rng(int(seed)) if isinstance(seed, Integral) else None

    def __call__(self, gradients: np.ndarray) -> np.ndarray:
        if self._seeds is not None:
            # One seed in every round would be one noise in every round; and with a seed and its followers, studies of
            # neighbouring seeds would share all their noise but one round's.
            self.mechanism.set_params(seed=int(self._seeds.integers(1 << 63)))
        shape = (-1, 1) if self.one_by_one else gradients.shape
        released = np.asarray(self.mechanism.fit_transform(gradients.reshape(shape)))
        self.guarantee = self.mechanism.privacy_guarantee_
        length = 1.0 if self.size is None else self.size * math.sqrt(gradients.shape[1])
        return released.reshape(gradients.shape) * length

    @property
    def law(self) -> RowMechanism | PrivacyGuarantee:
        """What one release follows, as far as the mechanism tells."""
        own = getattr(self.mechanism, "mechanism_", None)
        if isinstance(own, RowMechanism) and own.guarantee().epsilon == self.guarantee.epsilon:
            return own
        return self.guarantee


def _stated(guarantee: PrivacyGuarantee) -> float:
    return guarantee.epsilon if guarantee.stated is None else guarantee.stated
