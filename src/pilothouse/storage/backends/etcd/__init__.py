"""etcd as the store: what real clusters keep their objects in, and what kube-apiserver can take over from."""

from pilothouse.storage.backends.etcd.backend import EtcdBackend, EtcdSettings
from pilothouse.storage.backends.etcd.connection import Transport

__all__ = ["EtcdBackend", "EtcdSettings", "Transport"]
