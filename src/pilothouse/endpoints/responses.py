"""Answers of every kind: objects, Status failures, plain text."""

from __future__ import annotations

from typing import Any, Final

import orjson

from pilothouse.apis import types
from pilothouse.endpoints.negotiation import ALL_FORMATS, INDENTED_JSON, JSON, PLAIN_JSON, YAML, Media, negotiate
from pilothouse.endpoints.request import APIRequest
from pilothouse.machinery import errors, large_json
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.go_json import escape_html
from pilothouse.machinery.gvk import GroupVersionKind, parse_group_version
from pilothouse.net.messages import Response

PLAIN_TEXT: Final = b"text/plain; charset=utf-8"
NO_SNIFFING: Final = (b"x-content-type-options", b"nosniff")
PAGE_NOT_FOUND: Final = b"404 page not found\n"


def object_response(
    media: Media, obj: dict[str, Any], status: int = 200, headers: list[tuple[bytes, bytes]] | None = None
) -> Response:
    """Any object with kind and apiVersion, in the negotiated form."""
    return Response(status, encode_object(media, obj), media.content_type, headers)


def encode_object(media: Media, obj: dict[str, Any]) -> bytes:
    """The object's bytes in the negotiated form."""
    if media.format == JSON:
        if media.pretty:
            return escape_html(orjson.dumps(obj, option=orjson.OPT_INDENT_2))
        return escape_html(large_json.dumps(obj)) + b"\n"
    if media.format == YAML:
        from pilothouse.machinery import yaml_codec

        try:
            return yaml_codec.dump(obj).encode()
        except yaml_codec.YamlError as error:
            raise errors.generic(str(error)) from None
    return encode_protobuf(obj)


def encode_protobuf(obj: dict[str, Any]) -> bytes:
    """The object in protobuf, by the type its kind and apiVersion name."""
    from pilothouse.machinery import protobuf

    # The oldest discovery documents carry no version of their own.
    version = obj.get("apiVersion", "")
    gv = parse_group_version(version)
    gvk = GroupVersionKind(gv.group, gv.version, obj["kind"])
    return protobuf.encode(types.struct_of(version or "v1", obj["kind"]), obj, gvk)


def error_response(request: APIRequest | None, error: StatusError) -> Response:
    """The Status of a failure, in the form the client asked for where that is possible."""
    media = PLAIN_JSON
    if request is not None:
        audit = request.audit
        try:
            media = negotiate(request, ALL_FORMATS, routed=False)
        except StatusError:
            media = INDENTED_JSON
            if audit is not None:
                audit.overlook_answer()
        else:
            if audit is not None:
                audit.status = error.status
    headers: list[tuple[bytes, bytes]] = []
    if error.retry_after:
        headers.append((b"retry-after", b"%d" % error.retry_after))
    return object_response(media, error.status, error.code, headers)


def text_response(status: int, body: bytes, headers: list[tuple[bytes, bytes]] | None = None) -> Response:
    """Plain text, as Go's http.Error sends it."""
    return Response(status, body, PLAIN_TEXT, [NO_SNIFFING, *(headers or ())])


def page_not_found() -> Response:
    """The answer of a path nobody serves."""
    return text_response(404, PAGE_NOT_FOUND)
