"""The health checks that come before those of hooks, in kube-apiserver's order."""

from __future__ import annotations

from pilothouse.cluster.shared_parts import SharedParts
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.server.health import HealthChecks


def install_basic_checks(checks: HealthChecks, shared: SharedParts, informers: InformerFactory | None = None) -> None:
    """Add them, each backed by what it stands for. A server without informers has no check of them."""
    storage = shared.storage

    def background_error() -> str:
        found = [f"{name}: {why}" for name, why in shared.supervisor.unhealthy().items()]
        return "; ".join([*found, *filter(None, [shared.workers.error_of("ping")])])

    checks.add("ping", background_error, backed_by="the answer itself, and all supervised work")
    checks.add("log", shared.log_flushing.error, backed_by="the flushing of log handlers")
    checks.add(
        "loopback-serving-certificate",
        lambda: "",
        ("healthz", "livez"),
        backed_by="nothing: the loopback client has no socket, and so no certificate that could expire",
    )
    checks.add("etcd", storage.health_error, backed_by="the store")
    checks.add("etcd-readiness", storage.readiness_error, ("readyz",), backed_by="the store")
    for number, apart in enumerate(storage.apart()):
        words, ready = "the store of some resources", f"etcd-override-readiness-{number}"
        checks.add(f"etcd-override-{number}", apart.health_error, backed_by=words, group="etcd")
        checks.add(ready, apart.readiness_error, ("readyz",), backed_by=words, group="etcd-readiness")
    if storage.encryption is not None and storage.encryption.needs_check:
        checks.add("kms-providers", storage.encryption.error, backed_by="the key management services")
    if informers is not None:
        checks.add("informer-sync", lambda: _sync_error(informers), ("readyz",), backed_by="the shared informers")


def _sync_error(informers: InformerFactory) -> str:
    waiting = informers.not_synced()
    return f"not synced: {', '.join(waiting)}" if waiting else ""


def install_shutdown_check(checks: HealthChecks, shared: SharedParts) -> None:
    """Add the last one, which fails from the moment the process is told to stop."""

    def stopping_error() -> str:
        return "process is shutting down" if shared.lifecycle.stopping.is_set() else ""

    checks.add("shutdown", stopping_error, ("readyz",), backed_by="the lifecycle of the process")
