from skldp.client._flower_mod import flower_mod
from skldp.collection._flower import flower_client_app, flower_server_app

__all__ = [
    "flower_client_app",
    "flower_mod",
    "flower_server_app",
]
