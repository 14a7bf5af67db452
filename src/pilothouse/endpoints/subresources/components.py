"""Component statuses: an old and deprecated way to ask whether the parts of a control plane are well.

The server knows itself about its storage. The scheduler and the controller manager are asked on the ports where they
listen when they run on the same machine.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import orjson

from pilothouse.apis.columns import NAME
from pilothouse.apis.resources import Resource, Subresource
from pilothouse.apis.strategy import Column, Strategy
from pilothouse.endpoints.admission import Admission
from pilothouse.endpoints.list_options import list_options
from pilothouse.endpoints.negotiation import TABLE, Media, negotiate
from pilothouse.endpoints.output.objects import entry_response, metadata_of
from pilothouse.endpoints.output.table import table_of
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import object_response
from pilothouse.endpoints.scope import Endpoint, ResourceScope
from pilothouse.endpoints.subresources.endpoints import StoreOf, working_endpoint
from pilothouse.endpoints.subresources.probing import probe_health
from pilothouse.machinery import errors
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.objects import Object
from pilothouse.net.eager import ensure_task
from pilothouse.net.messages import Response
from pilothouse.registry.store.listing import predicate_of
from pilothouse.registry.store.store import Store
from pilothouse.storage.cacher import Entry

PORTS: Final = {"controller-manager": 10257, "scheduler": 10259}
STORAGE: Final = "etcd-0"
PROBE_SECONDS: Final = 20.0


def _healthy(obj: Object) -> Object:
    found: Object = next((c for c in obj.get("conditions") or () if c.get("type") == "Healthy"), {})
    return found


def _status_cell(obj: Object) -> str:
    condition = _healthy(obj)
    return ("Healthy" if condition.get("status") == "True" else "Unhealthy") if condition else "Unknown"


COLUMNS: Final = (
    NAME,
    Column("Status", "string", _status_cell, description="Status of the component conditions"),
    Column(
        "Message",
        "string",
        lambda obj: _healthy(obj).get("message", ""),
        description="Message of the component conditions",
    ),
    Column(
        "Error", "string", lambda obj: _healthy(obj).get("error", ""), description="Error of the component conditions"
    ),
)


def make_components_endpoint(
    resource: Resource, sub: Subresource | None, store_of: StoreOf, admission: Admission | None
) -> Endpoint:
    """``componentstatuses``. Any store can tell how storage is."""
    verbs = {"get": get_component, "list": list_components, "watch": refuse_watch}
    return working_endpoint(
        resource, sub, store_of("", "namespaces"), verbs, strategy=Strategy(), columns=COLUMNS, admission=admission
    )


async def get_component(scope: ResourceScope, request: APIRequest) -> Response:
    """One component, asked now."""
    media = negotiate(request, scope.formats, transforms=scope.transforms)
    name = request.info.name
    if name != STORAGE and name not in PORTS:
        raise errors.not_found(GroupResource("", "componentstatus"), name)
    entry = await _ask(scope.store, name)
    if media.transform == TABLE:
        return object_response(media, table_of(scope, request, media, [entry], "", {}))
    return await entry_response(scope, request, media, entry)


async def list_components(scope: ResourceScope, request: APIRequest) -> Response:
    """All components, asked at once."""
    media = negotiate(request, scope.formats, transforms=scope.transforms)
    options, _ = await list_options(scope, request)
    entries = await asyncio.gather(*(_ask(scope.store, name) for name in sorted((STORAGE, *PORTS))))
    test = predicate_of(options.labels, options.fields)
    return object_response(media, _listed(scope, request, media, [e for e in entries if test is None or test(e)]))


def _listed(scope: ResourceScope, request: APIRequest, media: Media, entries: list[Entry]) -> dict[str, Any]:
    if media.transform == TABLE:
        return table_of(scope, request, media, entries, "", {})
    kind, version = f"{scope.kind.kind}List", scope.api_version
    if media.transform:
        kind, version = "PartialObjectMetadataList", f"meta.k8s.io/{media.version}"
        items = [metadata_of(scope, entry, media) for entry in entries]
    else:
        items = [orjson.loads(entry.data) for entry in entries]
    return {"kind": kind, "apiVersion": version, "metadata": {}, "items": items}


async def refuse_watch(scope: ResourceScope, request: APIRequest) -> Response:
    """States that nobody keeps cannot be watched, as is said to who asks for it rightly."""
    negotiate(request, scope.formats, transforms=scope.transforms)
    await list_options(scope, request)
    raise errors.method_not_supported(scope.resource.group_resource, "watch")


async def _probe_storage(store: Store) -> tuple[bool, str]:
    await ensure_task()
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            await store.cache.wait_ready()
            await store.cache.wait_fresh()
    except TimeoutError:
        return False, "context deadline exceeded"
    return True, "ok"


async def _ask(store: Store, name: str) -> Entry:
    if name == STORAGE:
        healthy, message = await _probe_storage(store)
    else:
        healthy, message = await probe_health("127.0.0.1", PORTS[name])
    condition = {"type": "Healthy", "status": "True" if healthy else "False"}
    if message:
        condition["message"] = message
    return Entry(name, orjson.dumps({"metadata": {"name": name}, "conditions": [condition]}), 0, "", name)
