"""Flags of the store: where etcd is, how objects are encoded and encrypted, compaction, the watch cache."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupResource
from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.go_numbers import ValueRefused, parse_decimal
from pilothouse.options.kinds import BOOL, DURATION, INT, STRING, STRINGS

if TYPE_CHECKING:
    from pilothouse.registry.rest.deletion import Deleting
    from pilothouse.registry.store.stored_form import MediaType
    from pilothouse.storage.backends.etcd import EtcdSettings, Transport

DEFAULT_PROBE_SECONDS: Final = 2.0
_UNCACHED: Final = ("events", "events.events.k8s.io")
"""Off unless ``--watch-cache-sizes`` names them: they are many, and few read them twice."""
_MEDIA_TYPES = ("application/json", "application/vnd.kubernetes.protobuf", "application/yaml")
_OVERRIDES_REFUSAL = (
    "--etcd-servers-overrides invalid, must be of format: group/resource#servers, where servers are URLs, "
    "semicolon separated"
)


@dataclass
class EtcdOptions(FlagGroup):
    """The ``etcd`` section."""

    section = "etcd"

    delete_collection_workers: int = flag(
        "delete-collection-workers", INT, 1, "Workers for one delete-collection request."
    )
    enable_garbage_collector: bool = flag(
        "enable-garbage-collector",
        BOOL,
        True,
        "Keep deleted objects until the garbage collector has dealt with their dependents, where that is asked for; "
        "must agree with the controller manager's flag.",
    )
    encryption_provider_config: str = flag(
        "encryption-provider-config",
        STRING,
        "",
        "File that says how objects are encrypted in the store.",
    )
    encryption_provider_config_automatic_reload: bool = flag(
        "encryption-provider-config-automatic-reload",
        BOOL,
        False,
        "Read --encryption-provider-config again when it changes.",
    )
    etcd_cafile: str = flag("etcd-cafile", STRING, "", "Certificate authority that etcd's certificate is checked with.")
    etcd_certfile: str = flag("etcd-certfile", STRING, "", "Client certificate shown to etcd.")
    etcd_compaction_interval: float = flag(
        "etcd-compaction-interval",
        DURATION,
        300.0,
        "How often the store's history is compacted; 0 is never.",
    )
    etcd_count_metric_poll_period: float = flag(
        "etcd-count-metric-poll-period", DURATION, 60.0, "How often objects are counted for the metrics; 0 is never."
    )
    etcd_db_metric_poll_interval: float = flag(
        "etcd-db-metric-poll-interval",
        DURATION,
        30.0,
        "How often the store's size is read for the metrics; 0 is never.",
    )
    etcd_healthcheck_timeout: float = flag(
        "etcd-healthcheck-timeout", DURATION, 2.0, "Time-out of the etcd health check."
    )
    etcd_keyfile: str = flag("etcd-keyfile", STRING, "", "Key of --etcd-certfile.")
    etcd_prefix: str = flag("etcd-prefix", STRING, "/registry", "Start of every key in the store.")
    etcd_readycheck_timeout: float = flag(
        "etcd-readycheck-timeout", DURATION, 2.0, "Time-out of the etcd readiness check."
    )
    etcd_servers: tuple[str, ...] = flag(
        "etcd-servers",
        STRINGS,
        (),
        "etcd servers, as scheme://host:port. Without it the embedded store in --data-dir is used.",
    )
    etcd_servers_overrides: tuple[str, ...] = flag(
        "etcd-servers-overrides", STRINGS, (), "Other etcd servers for some resources: group/resource#url;url,..."
    )
    lease_reuse_duration_seconds: int = flag(
        "lease-reuse-duration-seconds", INT, 60, "How long one etcd lease is shared by new objects."
    )
    storage_backend: str = flag(
        "storage-backend", STRING, "", "Kind of store: etcd3, which --etcd-servers then must name."
    )
    storage_media_type: str = flag(
        "storage-media-type",
        STRING,
        "application/vnd.kubernetes.protobuf",
        f"Encoding of objects in etcd: {', '.join(_MEDIA_TYPES)}.",
    )
    watch_cache: bool = flag("watch-cache", BOOL, True, "Let clients that ask for it have older states from memory.")
    default_watch_cache_size: int = flag(
        "default-watch-cache-size",
        INT,
        100,
        "No effect.",
        hidden=True,
        moot="kube-apiserver does not read it",
        deprecated="Watch caches are sized automatically. This flag is no-op and it will be removed "
        "in a future version.",
    )
    watch_cache_sizes: tuple[str, ...] = flag(
        "watch-cache-sizes",
        STRINGS,
        (),
        "resource[.group]#size,...: size 0 switches --watch-cache off for a resource; others have no effect, but for "
        "events, of which it is off unless they are named.",
    )

    @property
    def root(self) -> str:
        """What stands before the slash of every key."""
        return root_of(self.etcd_prefix)

    @property
    def uses_etcd(self) -> bool:
        """Whether objects are kept in etcd, and not in the embedded store."""
        return bool(self.etcd_servers) or self.storage_backend == "etcd3"

    def deleting(self) -> Deleting:
        """How objects are deleted."""
        from pilothouse.registry.rest.deletion import Deleting

        return Deleting(self.delete_collection_workers, self.enable_garbage_collector)

    def reads_newest(self) -> Callable[[GroupResource], bool]:
        """Tells of which resources the watch cache is off: all reads of them are as new as the store."""
        if not self.watch_cache:
            return lambda resource: True
        off = {*_UNCACHED} - {setting.partition("#")[0] for setting in self.watch_cache_sizes}
        off.update(name for setting in self.watch_cache_sizes if (name := _switched_off(setting)))
        return lambda resource: str(resource) in off

    def transport(self, servers: Sequence[str] = ()) -> Transport:
        """Where etcd is (or the servers of an override), and how this server proves who it is."""
        from pilothouse.storage.backends.etcd import Transport

        return Transport(tuple(servers) or self.etcd_servers, self.etcd_cafile, self.etcd_certfile, self.etcd_keyfile)

    def settings(self) -> EtcdSettings:
        """How etcd is used."""
        from pilothouse.storage.backends.etcd import EtcdSettings

        return EtcdSettings(
            compaction_seconds=self.etcd_compaction_interval,
            lease_reuse_seconds=self.lease_reuse_duration_seconds,
            size_seconds=self.etcd_db_metric_poll_interval,
            health_seconds=self.etcd_healthcheck_timeout or DEFAULT_PROBE_SECONDS,
            readiness_seconds=self.etcd_readycheck_timeout or DEFAULT_PROBE_SECONDS,
            prefix=f"{self.root}/",
        )

    def overrides(self) -> dict[GroupResource, tuple[str, ...]]:
        """The servers of resources that have their own."""
        found = {}
        for override in self.etcd_servers_overrides:
            names, servers = override.split("#")
            group, resource = names.split("/")
            found[GroupResource(group, resource)] = tuple(servers.split(";"))
        return found

    def media_type(self, given: Set[str]) -> MediaType:
        """What objects are written as. The embedded store has its own form unless the flag is given."""
        from pilothouse.registry.store.stored_form import MediaType

        if not self.etcd_servers and "storage-media-type" not in given:
            return MediaType.OWN_JSON
        return MediaType(self.storage_media_type or MediaType.PROTOBUF.value)

    def validate(self, given: Set[str]) -> list[str]:
        """Backend, overrides, encryption, media type and cache sizes."""
        errors = []
        if self.storage_backend not in ("", "etcd3"):
            errors.append(
                "--storage-backend invalid, allowed values: etcd3. If not specified, it will default to 'etcd3'"
            )
        if self.uses_etcd and not self.etcd_servers:
            errors.append("--etcd-servers must be specified")
        if not all(_override_ok(override) for override in self.etcd_servers_overrides):
            errors.append(_OVERRIDES_REFUSAL)
        if self.encryption_provider_config_automatic_reload and not self.encryption_provider_config:
            errors.append("--encryption-provider-config-automatic-reload must be set with --encryption-provider-config")
        if self.storage_media_type and self.storage_media_type not in _MEDIA_TYPES:
            errors.append(
                f"--storage-media-type {quote(self.storage_media_type)} invalid, "
                f"allowed values: {', '.join(_MEDIA_TYPES)}"
            )
        if self.watch_cache:
            errors += [refusal for size in self.watch_cache_sizes if (refusal := _size_refusal(size))]
        return errors


def root_of(prefix: str) -> str:
    """A prefix as kube-apiserver reads it: a clean path from the top, whatever slashes are there or missing."""
    return posixpath.normpath("/" + prefix.lstrip("/")).rstrip("/")


def _override_ok(override: str) -> bool:
    parts = override.split("#")
    return len(parts) == 2 and len(parts[0].split("/")) == 2 and all(parts[1].split(";"))


def _switched_off(setting: str) -> str:
    """The resource whose cache a setting switches off, if it does."""
    name, _, size = setting.partition("#")
    return name if parse_decimal(size) == 0 else ""


def _size_refusal(setting: str) -> str:
    parts = setting.split("#")
    if len(parts) != 2:
        return f"invalid value of watch cache size: {setting}"
    try:
        size = parse_decimal(parts[1])
    except ValueRefused:
        return f"invalid size of watch cache size: {setting}"
    return f"watch cache size cannot be negative: {setting}" if size < 0 else ""
