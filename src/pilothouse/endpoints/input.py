"""Reading a request's body as an object of the kind that the endpoint takes.

    bytes → JSON value (from JSON, YAML or protobuf) → kind and version checked → decoded by schema → hub version

Every refusal is kube-apiserver's, word for word. Unknown and duplicate fields are dropped, and named in warnings or
in a 400 as ``fieldValidation`` asks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

import orjson

from pilothouse.endpoints.expected import Expected, cannot_handle, decode_as, mismatch
from pilothouse.endpoints.known_bodies import KnownBodies
from pilothouse.endpoints.negotiation import ALL_FORMATS, JSON, NO_PROTOBUF, PROTOBUF
from pilothouse.endpoints.offloading import offload
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.storable import check_message_storable, check_storable
from pilothouse.endpoints.write_options import WriteOptions, read_write_options
from pilothouse.machinery import errors, go_json, large_json
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupVersionKind, parse_group_version
from pilothouse.machinery.schema.emptied import Emptied, as_given
from pilothouse.machinery.schema.raw import as_sent, compacted, raw_places, read_texts, written_anew
from pilothouse.machinery.schema.repetition import read_repeating
from pilothouse.machinery.spans import step
from pilothouse.machinery.weights import weight_of
from pilothouse.machinery.workers import LONG, VERY_LONG, aside, finish
from pilothouse.net.messages import BodyTooLarge, CrowdedOut

BODY_LIMIT: Final = 3 * 1024 * 1024
_PARAMETER: Final = rb"[ \t]*[\w!#$%&'*+.^`|~-]+[ \t]*=[ \t]*(?:[\w!#$%&'*+.^`|~-]+|\"(?:[^\"\\\\]|\\\\.)*+\")[ \t]*"
_PARAMETERS: Final = re.compile(rb"(?:%b(?:;%b)*+)?;?[ \t]*" % (_PARAMETER, _PARAMETER))


async def read_body(request: APIRequest) -> bytes:
    """The whole body; 413 when it is too large."""
    body = request.arrived_body(BODY_LIMIT)
    if body is None:
        try:
            body = await request.body(BODY_LIMIT)
        except BodyTooLarge:
            raise errors.too_large(f"limit is {BODY_LIMIT}") from None
        except CrowdedOut:
            raise errors.too_many_requests("too many large requests at once, please try again later", 1) from None
    request.weight = weight_of(body)
    step("limitedReadBody succeeded", {"len": len(body)})
    return body


def content_format(request: APIRequest, formats: tuple[str, ...]) -> str:
    """The body's format by its Content-Type; 415 when it is none of these."""
    header = request.headers.get(b"content-type")
    if not header:
        return formats[0]
    if header == b"application/json" and JSON in formats:
        return JSON
    start, _, parameters = header.partition(b";")
    media_type = start.strip().lower().decode("latin-1")
    if media_type not in formats or (parameters and _PARAMETERS.fullmatch(parameters) is None):
        # Custom resources name protobuf among what they take, and yet do not take it.
        raise errors.unsupported_media_type(formats if media_type == PROTOBUF else ALL_FORMATS, media_type)
    return media_type


async def read_object(
    request: APIRequest,
    expected: Expected,
    known: KnownBodies | None = None,
    stored: dict[str, Any] | None = None,
) -> tuple[dict[str, Any], WriteOptions]:
    """The body of a create or update, decoded, and its options.

    The object is in the endpoint's version. It keeps its kind and apiVersion, filled in where missing. Bodies that are
    ``known`` are not looked at again, nor are parts that are as in the object that seems to be ``stored``.
    """
    if request.method == "PUT":
        data = await read_body(request)
        options = read_write_options(request)
        format = content_format(request, expected.formats)
    else:
        format = content_format(request, expected.formats)
        data = await read_body(request)
        options = read_write_options(request)
    if request.weight < LONG:
        if known is not None and format == JSON and (found := known.find(data)) is not None:
            request.known = found
            return found.decode(), options
        return await _read(request, expected, data, format, options.validation, known, stored), options
    reading = _read(request, expected, data, format, options.validation)
    obj = await aside(finish, reading, weight=request.weight)
    if request.weight >= VERY_LONG:
        request.note_made(obj)
    return obj, options


async def _read(
    request: APIRequest,
    expected: Expected,
    data: bytes,
    format: str,
    validation: str,
    known: KnownBodies | None = None,
    stored: dict[str, Any] | None = None,
) -> dict[str, Any]:
    if format == PROTOBUF:
        obj = _from_protobuf(data, expected)
        if places := raw_places(expected.struct):
            request.raw = compacted(places)
        return obj
    custom, told = expected.formats is NO_PROTOBUF, False
    try:
        value, repeated = await _parse(data, format, expected)
    except go_json.BeyondFloats as error:
        if custom:
            raise expected.unreadable(expected.identify(error.value, data), str(error)) from None
        value, repeated, known = error.value, "", None
    if custom and go_json.may_be_beyond_integers(data):
        value = go_json.without_long_integers(value)
    places = raw_places(expected.struct)
    if places:
        request.raw = as_sent(read_texts(data, places)) if format == JSON else written_anew(places)
    # Decoding may work in place: whether fields stand twice is told by the body as it was sent.
    errs: list[str] = []
    if repeated:
        errs = [repeated] if validation == "Strict" else repeated_lines(repeated)
    if format == JSON and go_json.may_repeat_fields(data, value):
        if custom:
            errs = [f"duplicate field {quote(path)}" for path in await offload(go_json.duplicate_fields, data)]
        elif (reading := await offload(partial(read_repeating, expected.struct), data)) is not None:
            (value, errs), told = reading, True
    if expected.is_named_in(value):
        gvk = expected.gvk
    else:
        gvk = expected.identify(value, data, lenient=validation == "Ignore")
    reader = expected if gvk is expected.gvk else expected.reader(gvk)
    if expected.stored and request.weight >= VERY_LONG:
        check_storable(expected.struct, value)
    text = data if format == JSON else b""
    obj, unknown = decode_as(value, gvk, reader, text, stored if gvk is expected.gvk else None)
    keep_reset(obj)
    if unknown is not None and not told and validation != "Ignore":
        errs += unknown()
    if errs:
        report(request, validation, gvk, expected, errs)
    if gvk is not expected.gvk:
        expected.check_version(gvk)
    if known is not None and format == JSON and unknown is None and not errs and not places:
        known.note(data, obj)
    return obj


def keep_reset(obj: dict[str, Any]) -> None:
    """An explicitly empty ``managedFields`` asks for all ownership to be forgotten; decoding alone would lose that.

    Of custom resources it is lost in kube-apiserver as well.
    """
    if isinstance(obj, Emptied) and as_given(obj["metadata"], "managedFields") is not None:
        obj["metadata"].setdefault("managedFields", [])


async def repeated_fields(data: bytes, value: Any) -> list[str]:
    """The paths of fields that stand twice in a JSON body, which was read as this value."""
    return await offload(go_json.duplicate_fields, data) if go_json.may_repeat_fields(data, value) else []


async def _parse(data: bytes, format: str, expected: Expected) -> tuple[Any, str]:
    """The value, and what YAML says about keys that stand twice."""
    if format == JSON:
        value = await parse_json(data, lambda why: expected.unrecognized(why, data))
        return {} if value is None else value, ""
    from pilothouse.machinery import yaml_codec

    try:
        value, repeated = await offload(yaml_codec.load_sorted, data)
    except ValueError as error:
        raise expected.unrecognized(str(error), data) from None
    return {} if value is None else value, repeated


async def parse_json(data: bytes, refuse: Callable[[str], errors.StatusError]) -> Any:
    """A JSON value; ``refuse`` makes the Status for what is none. Raises ``BeyondFloats``."""
    try:
        return large_json.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        return await offload(go_json.read_mended, data)
    except go_json.JSONSyntaxError as error:
        raise refuse(f"couldn't get version/kind; json parse error: {error}") from None


def report(request: APIRequest, validation: str, gvk: GroupVersionKind, expected: Expected, errs: list[str]) -> None:
    """Tell the client about fields that stand twice or that nobody knows, as it asked to be told."""
    if not errs or validation == "Ignore":
        return
    if validation == "Strict":
        raise expected.strict_error(gvk, "strict decoding error: " + ", ".join(errs))
    for error in errs:
        request.warn(error)


def repeated_lines(message: str) -> list[str]:
    """YAML's report on repeated keys, one warning a line."""
    return [line.strip() for line in message.splitlines()[1:]]


def _from_protobuf(data: bytes, expected: Expected) -> dict[str, Any]:
    from pilothouse.machinery import protobuf

    try:
        envelope = protobuf.decode(data)
    except ValueError as error:
        raise expected.unrecognized(str(error), data) from None
    own, gv = expected.gvk, None
    with suppress(ValueError):  # what is no version is none
        gv = parse_group_version(envelope.api_version)
    if gv is None or (not gv.group and not gv.version):
        gv = own.group_version
    gvk = GroupVersionKind(gv.group, gv.version, envelope.kind or own.kind)
    if gvk != expected.gvk and gvk not in expected.also:
        raise mismatch(gvk, expected)
    if expected.stored and len(data) >= LONG:
        check_message_storable(expected.struct, envelope.raw)
    try:
        obj: dict[str, Any] = protobuf.decode_message(expected.struct, envelope.raw)
    except ValueError as error:
        raise cannot_handle(gvk, expected, str(error)) from None
    obj["kind"], obj["apiVersion"] = gvk.kind, str(gvk.group_version)
    return obj
