"""APIServices: those of local group versions are registered, those of others judged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pilothouse.aggregator.availability import RemoteAvailability
from pilothouse.aggregator.custom_versions import CustomVersionServices
from pilothouse.aggregator.local_availability import LocalAvailability
from pilothouse.aggregator.metrics import AvailabilityMetrics
from pilothouse.aggregator.proxy_certificate import ProxyCertificate
from pilothouse.aggregator.registration import AutoRegistration, built_in_services
from pilothouse.aggregator.remote_openapi import RemoteOpenApi
from pilothouse.aggregator.remote_swagger import RemoteSwagger
from pilothouse.cluster.hooks.hook import HookContext, PostStartHook
from pilothouse.machinery.supervision import Supervisor

_GROUP: Final = "apiregistration.k8s.io"


def proxying(context: HookContext) -> Iterator[PostStartHook]:
    """The certificate that this server shows to others can be used, and is renewed; where it has one."""
    flags = context.options.control_plane
    if not (flags.proxy_client_cert_file and flags.proxy_client_key_file):
        return

    def renew() -> None:
        context.aggregation.renew()
        if context.peers is not None:
            context.peers.proxy.renew()

    certificate = ProxyCertificate(flags.proxy_client_cert_file, flags.proxy_client_key_file, renew)
    yield PostStartHook(
        "aggregator-reload-proxy-client-cert", "the files of --proxy-client-cert-file", certificate.start
    )


def registration(context: HookContext) -> Iterator[PostStartHook]:
    """One informer, the routes that follow it, and the controllers behind six names."""
    servers, store = context.servers, context.store(_GROUP, "apiservices")
    informer = context.informers.of(_GROUP, "v1", "apiservices")
    registration = AutoRegistration(store, context.informers)
    local = LocalAvailability(store, context.informers)
    metrics = AvailabilityMetrics(context.informers)
    context.metrics.register(metrics)
    availability = RemoteAvailability(store, context.informers, context.aggregation.check, metrics)
    for service in built_in_services(
        version.version for server in servers.aggregator.chain() for version in server.versions.values()
    ):
        registration.add(service)
    servers.custom.tell(CustomVersionServices(registration))

    async def synced(supervisor: Supervisor) -> None:
        await informer.wait_synced()

    yield PostStartHook("start-kube-aggregator-informers", "the informer of APIServices", synced, informer.errors)
    yield PostStartHook(
        "apiservice-status-local-available-controller", "the controller of local availability", local.start
    )
    yield PostStartHook(
        "apiservice-status-remote-available-controller", "the controller of remote availability", availability.start
    )
    yield PostStartHook(
        "apiservice-registration-controller",
        "the routes of remote APIServices",
        servers.remotes.start,
        servers.remotes.unrouted,
    )
    yield PostStartHook(
        "apiservice-discovery-controller", "the discovery of remote APIs", servers.remote_discovery.start
    )
    yield PostStartHook("kube-apiserver-autoregistration", "the controller of local APIServices", registration.start)
    servers.aggregator.checks.add("autoregister-completion", registration.missing, backed_by="the stored APIServices")


def documents(context: HookContext) -> Iterator[PostStartHook]:
    """OpenAPI documents are made from what is installed when they are asked for; controllers ask other servers."""
    parts = context.servers.remotes, context.aggregation, context.openapi
    yield PostStartHook(
        "apiservice-openapi-controller",
        "OpenAPI v2 of what is installed, and of remote APIs",
        RemoteSwagger(*parts).start,
        context.openapi.error,
    )
    yield PostStartHook(
        "apiservice-openapiv3-controller",
        "OpenAPI v3 of what is installed, and of remote APIs",
        RemoteOpenApi(*parts).start,
        context.openapi.error,
    )
