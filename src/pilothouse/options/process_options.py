"""The options that any process of ours has, whichever servers live in it."""

from __future__ import annotations

from typing import Protocol

from pilothouse.options.audit import AuditOptions
from pilothouse.options.egress import EgressSelectorOptions
from pilothouse.options.etcd import EtcdOptions
from pilothouse.options.generic import GenericOptions
from pilothouse.options.logs import LogOptions
from pilothouse.options.metrics import MetricsOptions
from pilothouse.options.own import StateOptions
from pilothouse.options.secure_serving import SecureServingOptions
from pilothouse.options.traces import TracingOptions


class ProfilingOptions(Protocol):
    """What is measured about the process itself."""

    @property
    def contention_profiling(self) -> bool: ...


class ProcessOptions(Protocol):
    """What a process is made by."""

    @property
    def own(self) -> StateOptions: ...
    @property
    def generic(self) -> GenericOptions: ...
    @property
    def etcd(self) -> EtcdOptions: ...
    @property
    def secure_serving(self) -> SecureServingOptions: ...
    @property
    def audit(self) -> AuditOptions: ...
    @property
    def egress(self) -> EgressSelectorOptions: ...
    @property
    def logs(self) -> LogOptions: ...
    @property
    def metrics(self) -> MetricsOptions: ...
    @property
    def traces(self) -> TracingOptions: ...
    @property
    def features(self) -> ProfilingOptions: ...
    def greeting(self) -> str:
        """What to tell the user once the server is ready."""
        ...

    def explain(self, error: Exception) -> str:
        """Why a start failed, with the flag that is the matter and what to do, in a line."""
        ...

    def client_authorities(self) -> tuple[str, ...]:
        """The files with the authorities of clients and of front proxies, as they are when sockets are opened."""
        ...
