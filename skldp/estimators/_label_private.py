"""What trains a model of scikit-learn on targets that were released first, whatever the kind of model."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if

from skldp.estimators._guarantee_mixin import GuaranteeMixin
from skldp.estimators._validation import fit_context

__all__ = ["HasTargetMechanism", "LabelPrivate", "inner_has", "takes_batches"]


def inner_has(name: str) -> Callable[[Any], bool]:
    """Whether the model inside has a method, for ``available_if``."""

    def check(self: Any) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), name)
        return True

    return check


def takes_batches(self: Any) -> bool:
    """Whether there is a ``partial_fit``, for ``available_if``."""
    if getattr(self, "stages", 1) > 1:
        raise AttributeError("There is no partial_fit with stages, which divide the people of one fit.")
    return inner_has("partial_fit")(self)


class HasTargetMechanism(GuaranteeMixin, ABC):
    """Base of what applies a clone of a parameter to y, on which its guarantee depends.

    Attributes
    ----------
    _mechanism_name : str
        The parameter; the fitted clone has its name with an underscore behind.
    """

    _mechanism_name: ClassVar[str] = "label_mechanism"

    @abstractmethod
    def _default_mechanism(self) -> Any:
        """What is applied where the parameter is None."""

    def _new_mechanism(self) -> Any:
        given = getattr(self, self._mechanism_name)
        if not isinstance(given, GuaranteeMixin | None):
            # Its errors could show targets, which it would not protect either.
            raise ValueError(
                f"{self._mechanism_name} must be a private one, such as {type(self._default_mechanism()).__name__}. "
                f"Got {type(given).__name__} instead."
            )
        return self._default_mechanism() if given is None else clone(given)

    def _guarantee_parameters(self) -> dict[str, Any]:
        name, given = self._mechanism_name, getattr(self, self._mechanism_name)
        within = {} if given is None else given.get_params()
        return {name: given} | {f"{name}__{inner}": value for inner, value in within.items()}


class LabelPrivate(HasTargetMechanism, MetaEstimatorMixin):
    """Base of the classifier and the regressor whose inner `estimator` sees released targets only.

    Attributes
    ----------
    _domain_name : str
        The parameter of the mechanism that declares what a target may be.
    """

    _domain_name: ClassVar[str] = "classes"
    estimator: Any
    estimator_: Any
    privacy_guarantee_: Any

    @abstractmethod
    def _check_inner(self) -> None:
        """Refuse an inner estimator that does not fit, before a target is looked at."""

    def _targets(self, y: Any) -> Any:
        """Targets as the mechanism is given them."""
        return y

    def _partly(self, mechanism: Any) -> dict[str, Any]:
        """What the first ``partial_fit`` of the inner estimator is told beside rows and targets."""
        return {}

    def _train(self, X: Any, y: Any, fit_params: dict[str, Any]) -> Self:
        self._check_inner()
        mechanism, estimator = self._new_mechanism(), clone(self.estimator)
        routed = self._routed("fit", fit_params)
        released = mechanism.fit_transform(self._targets(y))
        estimator.fit(X, released, **routed)
        return self._keep(mechanism, estimator)

    @available_if(takes_batches)
    @fit_context(prefer_skip_nested_validation=False)
    def partial_fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Release the targets of a batch of other people, and train on them as well.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Handed to `estimator` unprotected.
        y : array-like of shape (n_samples,)
            The private targets of this batch. The guarantee is that of one release: of somebody who is in several
            batches it holds for each of them, and their epsilons add up.
        **fit_params : dict
            For ``estimator.partial_fit``.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the mechanism does not declare what a target may be, which a batch cannot tell.
        """
        first = "estimator_" not in vars(self)
        if first:
            self._check_inner()
            mechanism, estimator = self._new_mechanism(), clone(self.estimator)
            if getattr(mechanism, self._domain_name, ()) is None:
                raise ValueError(
                    f"partial_fit needs {self._mechanism_name} with declared {self._domain_name}, which one batch does "
                    f"not tell. Got {self._domain_name}=None instead."
                )
        else:
            self._check_unchanged()
            mechanism, estimator = getattr(self, f"{self._mechanism_name}_"), self.estimator_
        routed = self._routed("partial_fit", fit_params)
        released = (mechanism.fit_transform if first else mechanism.transform)(self._targets(y))
        estimator.partial_fit(X, released, **routed | (self._partly(mechanism) if first else {}))
        return self._keep(mechanism, estimator)

    def get_metadata_routing(self) -> MetadataRouter:
        """Routing of metadata: what is passed to ``fit`` goes to ``estimator.fit``, and so for ``partial_fit``.

        Returns
        -------
        routing : MetadataRouter
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        if hasattr(self.estimator, "partial_fit"):
            mapping.add(caller="partial_fit", callee="partial_fit")
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=mapping)

    def _routed(self, method: str, fit_params: dict[str, Any]) -> dict[str, Any]:
        if not get_config()["enable_metadata_routing"]:
            return fit_params
        routed: dict[str, Any] = process_routing(self, method, **fit_params)["estimator"][method]
        return routed

    def _keep(self, mechanism: Any, estimator: Any) -> Self:
        setattr(self, f"{self._mechanism_name}_", mechanism)
        self.estimator_ = estimator
        self.privacy_guarantee_ = mechanism.privacy_guarantee_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(estimator, name):
                setattr(self, name, getattr(estimator, name))
        return self

    def _ask(self, method: str, X: Any) -> np.ndarray:
        answers: np.ndarray = getattr(self.estimator_, method)(X)
        return answers

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.non_deterministic = inner.non_deterministic or get_tags(self._new_mechanism()).non_deterministic
        tags.input_tags = inner.input_tags
        return tags
