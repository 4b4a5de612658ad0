"""Metadata routing of estimators that hold one estimator."""

from typing import Any

from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing


class RoutingMixin:
    """Mixin of estimators whose ``fit`` passes metadata to that of their parameter `estimator`."""

    estimator: Any

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata routing: ``fit`` passes to that of `estimator`.

        Returns
        -------
        routing : MetadataRouter
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=mapping)

    def _routed(self, fit_params: dict[str, Any]) -> dict[str, Any]:
        """Return the metadata of the inner fit."""
        if not get_config()["enable_metadata_routing"]:
            return fit_params
        routed: dict[str, Any] = process_routing(self, "fit", **fit_params)["estimator"]["fit"]
        return routed
