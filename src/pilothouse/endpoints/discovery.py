"""Discovery: which groups, versions and resources are served, in all three forms clients ask for.

Documents are encoded when first asked for and kept until the set of served versions changes; each carries an ETag, so
that clients who know it already get a 304.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from pilothouse.apis.resources import Resource, Subresource, Version
from pilothouse.endpoints.negotiation import ALL_FORMATS, PLAIN_JSON, Media, negotiate
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import encode_object, error_response
from pilothouse.machinery import errors
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.machinery.workers import LONG, aside
from pilothouse.net.messages import Response

_AGGREGATED: Final = b";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
Document = dict[str, Any]


def resource_list(version: Version) -> Document:
    """``/apis/<group>/<version>``."""
    items = []
    for resource in version.resources:
        items.append(_api_resource(resource))
        items += (_api_subresource(resource, sub) for sub in resource.subresources)
    document: Document = {"kind": "APIResourceList"}
    if version.group:
        document["apiVersion"] = "v1"
    return {**document, "groupVersion": str(version.group_version), "resources": items}


def _api_resource(resource: Resource) -> Document:
    item: Document = {
        "name": resource.name,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        item["shortNames"] = list(resource.short_names)
    if resource.categories:
        item["categories"] = list(resource.categories)
    if resource.is_stored:
        item["storageVersionHash"] = resource.storage_version_hash
    return item


def _api_subresource(resource: Resource, sub: Subresource) -> Document:
    item: Document = {"name": f"{resource.name}/{sub.name}", "singularName": "", "namespaced": resource.namespaced}
    if sub.names_version or sub.kind.group_version != resource.group_version:
        item["group"], item["version"] = sub.kind.group, sub.kind.version
    item["kind"] = sub.kind.kind
    item["verbs"] = list(sub.verbs)
    return item


@dataclass
class RemoteVersion(Version):
    """A version that another server serves, with what aggregated discovery says of it."""

    entry: Document = field(default_factory=dict)


def group_document(group: str, versions: Iterable[GroupVersion], *, top: bool = True) -> Document:
    """``/apis/<group>``; inside the list of groups it carries no type."""
    listed = [{"groupVersion": str(gv), "version": gv.version} for gv in versions]
    head: Document = {"kind": "APIGroup", "apiVersion": "v1"} if top else {}
    return {**head, "name": group, "versions": listed, "preferredVersion": listed[0]}


def group_list(groups: dict[str, list[GroupVersion]]) -> Document:
    """``/apis``."""
    listed = [group_document(group, versions, top=False) for group, versions in groups.items()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def api_versions(address: str) -> Document:
    """``/api``."""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def aggregated(groups: dict[str, list[Version]]) -> Document:
    """All groups with all their resources in one document (apidiscovery.k8s.io/v2)."""
    items = [
        {"metadata": {"name": group} if group else {}, "versions": [_aggregated_version(v) for v in versions]}
        for group, versions in groups.items()
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _aggregated_version(version: Version) -> Document:
    if isinstance(version, RemoteVersion):
        return version.entry
    return {
        "version": version.version,
        "resources": [_aggregated_resource(resource, custom=version.custom) for resource in version.resources],
        "freshness": "Current",
    }


def _aggregated_resource(resource: Resource, *, custom: bool) -> Document:
    """Built-in resources leave out what their group version says already; custom ones do not."""
    group, version = resource.group_version if custom else ("", "")
    item: Document = {
        "resource": resource.name,
        "responseKind": {"group": group, "version": version, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        item["shortNames"] = list(resource.short_names)
    if resource.categories:
        item["categories"] = list(resource.categories)
    if resource.subresources:
        item["subresources"] = [_aggregated_subresource(resource, sub, custom=custom) for sub in resource.subresources]
    return item


def _aggregated_subresource(resource: Resource, sub: Subresource, *, custom: bool) -> Document:
    foreign = custom or sub.names_version or sub.kind.group_version != resource.group_version
    return {
        "subresource": sub.name,
        "responseKind": {
            "group": sub.kind.group if foreign else "",
            "version": sub.kind.version if foreign else "",
            "kind": sub.kind.kind,
        },
        "verbs": list(sub.verbs),
    }


class KeptDocument:
    """A document in every form it was asked for, with its ETag."""

    def __init__(self, make: Callable[[], Document]) -> None:
        self._make = make
        self._encoded: dict[tuple[str, bool], bytes] = {}
        self._etag = b""

    def respond(
        self, request: APIRequest, *, media: Media | None = None, content_type: bytes = b"", routed: bool = True
    ) -> Response:
        """Answer with it. Who takes no form of it is refused in the router's words, or (not ``routed``) plainly."""
        if media is None:
            try:
                media = negotiate(request, ALL_FORMATS, routed=routed)
            except errors.StatusError as error:
                return error_response(request, error)
        key = (media.format, media.pretty)
        body = self._encoded.get(key)
        if body is None:
            body = self._encoded[key] = encode_object(media, self._make())
        return Response(200, body, content_type or media.content_type)

    async def respond_tagged(self, request: APIRequest, media: Media) -> Response:
        """The same with an ETag and ``Vary``, as aggregated discovery has it.

        It is encoded aside: other servers, which it tells of too, may serve any number of resources.
        """
        if not self._etag or (media.format, media.pretty) not in self._encoded:
            await aside(self._encode_tagged, media, self._make(), weight=LONG)
        response = self.respond(request, media=media, content_type=media.content_type + _AGGREGATED)
        headers = [(b"etag", self._etag), (b"vary", b"Accept"), (b"cache-control", b"public")]
        if request.headers.get(b"if-none-match") == self._etag:
            return Response(304, b"", b"", headers)
        response.headers = headers
        return response

    def _encode_tagged(self, media: Media, document: Document) -> None:
        body = encode_object(media, document)
        if not self._etag:
            # The tag names the content, in whichever form it was asked for first.
            content = body if media == PLAIN_JSON else encode_object(PLAIN_JSON, document)
            self._etag = b'"' + hashlib.sha512(content).hexdigest().upper().encode() + b'"'
        self._encoded[(media.format, media.pretty)] = body
