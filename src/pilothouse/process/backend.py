"""From flags to the store. Here, and nowhere else, it is decided which backend keeps the objects."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.metrics import CollectedGauge, CollectedHistogram, Gauge
from pilothouse.machinery.observations import Observations
from pilothouse.machinery.supervision import Supervisor
from pilothouse.net.dialing import Dialer
from pilothouse.options.process_options import ProcessOptions
from pilothouse.storage.backends.contract import Backend
from pilothouse.storage.backends.sqlite import Retention, SQLiteBackend
from pilothouse.storage.stack import MakeEncryption, StorageStack

STORE_FILE: Final = "store.db"
_EXAMINE_AFTER: Final = 30.0
"""Seconds until the file is looked through: the start has other things to do."""
_SIZE_WORDS: Final = "[STABLE] Bytes of the store on disk."


def make_storage(
    options: ProcessOptions, identity: str, supervisor: Supervisor, dialer: Dialer | None = None
) -> StorageStack:
    """The backend with its encryption and its caches, not yet opened. Raises OSError and ValueError.

    ``dialer`` makes the connections to etcd.
    """
    if options.etcd.uses_etcd:
        return _make_etcd(options, identity, supervisor, dialer)
    retention = Retention(seconds=options.etcd.etcd_compaction_interval or 300.0)
    path = str(Path(options.own.data_dir) / STORE_FILE)
    backend = SQLiteBackend(path, retention=retention, examine_after=_EXAMINE_AFTER, supervisor=supervisor)
    encrypt = _encrypting(options, identity, supervisor)
    size = CollectedGauge(
        "apiserver_storage_size_bytes",
        _SIZE_WORDS,
        ("storage_cluster_id",),
        lambda: [(("sqlite",), _file_sizes(path, path + "-wal"))],
        aside=True,
    )
    return StorageStack(
        backend,
        encrypt,
        identity,
        readiness=lambda: backend.error,
        supervisor=supervisor,
        counted=(size,),
        size=lambda: _file_sizes(path, path + "-wal"),
    )


def make_shared_storage(
    options: ProcessOptions, identity: str, supervisor: Supervisor, backend: Backend, readiness: Callable[[], str]
) -> StorageStack:
    """The same on the embedded store of another process, which ``backend`` leads to."""
    encrypt = _encrypting(options, identity, supervisor)
    return StorageStack(backend, encrypt, identity, readiness=readiness, supervisor=supervisor)


def _file_sizes(*paths: str) -> int:
    return sum(os.path.getsize(path) for path in paths if os.path.exists(path))


def _make_etcd(options: ProcessOptions, identity: str, supervisor: Supervisor, dialer: Dialer | None) -> StorageStack:
    """One stack for each set of servers that the flags name."""
    from pilothouse.storage.backends.etcd import EtcdBackend  # only where it is used
    from pilothouse.storage.backends.etcd.leases import SHARE_BUCKETS

    flags, encrypt = options.etcd, _encrypting(options, identity, supervisor)

    size = Gauge("apiserver_storage_size_bytes", _SIZE_WORDS, ("storage_cluster_id",), joined="most")
    shares: list[Callable[[], Observations]] = []
    leases = CollectedHistogram(
        "etcd_lease_object_counts",
        "[ALPHA] Objects that shared a lease.",
        (),
        SHARE_BUCKETS,
        lambda: [((), Observations.joined([read() for read in shares]))],
    )

    def make(number: int, servers: Sequence[str], others: Mapping[GroupResource, StorageStack]) -> StorageStack:
        known = size.labelled(f"etcd-{number}")

        def tell_size(bytes: int) -> None:
            known.value = bytes

        backend = EtcdBackend(flags.transport(servers), flags.settings(), tell_size, dialer)
        shares.append(lambda: backend.lease_shares)
        return StorageStack(
            backend,
            encrypt,
            identity,
            others=others,
            health=lambda: backend.health.error,
            readiness=lambda: backend.readiness.error,
            supervisor=supervisor,
            counted=(size, leases),
            size=lambda: int(known.value),
        )

    overrides = flags.overrides()
    apart = sorted(set(overrides.values()) - {flags.etcd_servers})
    stacks = {servers: make(number, servers, {}) for number, servers in enumerate(apart, 1)}
    others = {resource: stacks[servers] for resource, servers in overrides.items() if servers in stacks}
    return make(0, flags.etcd_servers, others)


def _encrypting(options: ProcessOptions, identity: str, supervisor: Supervisor) -> MakeEncryption | None:
    flags = options.etcd
    if not flags.encryption_provider_config:
        return None
    from pilothouse.storage.encryption.metrics import EncryptionMetrics
    from pilothouse.storage.encryption.reloading import Encryption

    def encrypt(backend: Backend, metrics: EncryptionMetrics) -> Encryption:
        reload = flags.encryption_provider_config_automatic_reload
        return Encryption(
            backend,
            flags.encryption_provider_config,
            flags.root,
            metrics,
            identity,
            reload=reload,
            supervisor=supervisor,
        )

    return encrypt
