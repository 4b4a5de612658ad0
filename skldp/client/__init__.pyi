from skldp.client._fields import Field
from skldp.client._ledger import DeviceLedger
from skldp.client._policy import Policy
from skldp.client._vector_field import VectorField

__all__ = [
    "DeviceLedger",
    "Field",
    "Policy",
    "VectorField",
]
