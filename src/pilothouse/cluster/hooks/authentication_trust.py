"""Whom aggregated servers should trust: a config map made of this server's flags."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.cluster.hooks.hook import HookContext, PostStartHook
from pilothouse.controlplane.bootstrap.authentication_trust import (
    ALLOWED_NAMES,
    EXTRA_PREFIXES,
    GROUP_HEADERS,
    UID_HEADERS,
    USERNAME_HEADERS,
    AuthenticationTrust,
    Trust,
)


def cluster_authentication(context: HookContext) -> Iterator[PostStartHook]:
    """Kept from the time that the server is ready."""
    flags = context.options.authentication
    lists = {
        ALLOWED_NAMES: flags.requestheader_allowed_names,
        EXTRA_PREFIXES: flags.requestheader_extra_headers_prefix,
        GROUP_HEADERS: flags.requestheader_group_headers,
        UID_HEADERS: flags.requestheader_uid_headers,
        USERNAME_HEADERS: flags.requestheader_username_headers,
    }
    trust = Trust(flags.client_ca_file, flags.requestheader_client_ca_file, lists)
    config_maps, ready = context.store("", "configmaps"), context.lifecycle.ready
    keeper = AuthenticationTrust(config_maps, context.informers, trust, ready)
    yield PostStartHook(
        "start-cluster-authentication-info-controller",
        "the controller of extension-apiserver-authentication",
        keeper.start,
    )
