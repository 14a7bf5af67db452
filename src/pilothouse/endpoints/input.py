"""Reading a request's body as an object of the kind that the endpoint takes.

    bytes → JSON value (from JSON, YAML or protobuf) → kind and version checked → decoded by schema → hub version

Every refusal is kube-apiserver's, word for word. Unknown and duplicate fields are dropped, and named in warnings or
in a 400 as ``fieldValidation`` asks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Final

import orjson

from pilothouse.endpoints.known_bodies import KnownBodies
from pilothouse.endpoints.negotiation import ALL_FORMATS, JSON, NO_PROTOBUF, PROTOBUF
from pilothouse.endpoints.offloading import offload
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.schemes import find_kind, unknown_kind
from pilothouse.endpoints.storable import check_message_storable, check_storable
from pilothouse.endpoints.write_options import WriteOptions, read_write_options
from pilothouse.machinery import errors, go_json, large_json
from pilothouse.machinery.go_json import json_type
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupVersionKind, parse_group_version
from pilothouse.machinery.schema.decoding import DecodeError, decode
from pilothouse.machinery.schema.emptied import Emptied, as_given
from pilothouse.machinery.schema.own_errors import gravest
from pilothouse.machinery.schema.raw import as_sent, compacted, raw_places, read_texts, written_anew
from pilothouse.machinery.schema.repetition import MOST_ERRORS, read_repeating
from pilothouse.machinery.schema.types import Struct
from pilothouse.machinery.schema.unknown import unknown_fields
from pilothouse.machinery.spans import step
from pilothouse.machinery.weights import weight_of
from pilothouse.machinery.workers import LONG, VERY_LONG, aside, finish
from pilothouse.net.messages import BodyTooLarge, CrowdedOut

BODY_LIMIT: Final = 3 * 1024 * 1024
_SHOWN: Final = 30
_UNREADABLE: Final = re.compile("[\udc80-\udcff]")
"""Bytes that are no character, each of which Go shows as one."""
_PARAMETER: Final = rb"[ \t]*[\w!#$%&'*+.^`|~-]+[ \t]*=[ \t]*(?:[\w!#$%&'*+.^`|~-]+|\"(?:[^\"\\\\]|\\\\.)*+\")[ \t]*"
_PARAMETERS: Final = re.compile(rb"(?:%b(?:;%b)*+)?;?[ \t]*" % (_PARAMETER, _PARAMETER))
_USUAL: Final = frozenset({"kind", "apiVersion", "metadata", "spec", "status", "data"})
TYPE_META: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)
_MOVED: Final = {
    ("extensions", "DaemonSet"): "apps",
    ("extensions", "Deployment"): "apps",
    ("extensions", "ReplicaSet"): "apps",
    ("extensions", "Ingress"): "networking.k8s.io",
    ("extensions", "NetworkPolicy"): "networking.k8s.io",
    ("extensions", "Scale"): "autoscaling",
    ("apps", "Scale"): "autoscaling",
    ("", "Event"): "events.k8s.io",
    ("events.k8s.io", "Event"): "",
}
"""Kinds that other groups once served: versions of one kind, not different kinds."""

StrictErrors = Callable[[], list[str]]
"""Lists what was wrong with a body and let pass; made only when somebody asks."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The kind an endpoint takes: its coordinates and its schema."""

    gvk: GroupVersionKind
    struct: Struct
    internal_package: str
    """The package of the hub type, as conversion errors name it: ``core``, ``apps``."""
    formats: tuple[str, ...] = ALL_FORMATS
    also: frozenset[GroupVersionKind] = frozenset()
    """Older versions of the same shape that are taken as well."""
    scheme: str = ""
    """What knows the kinds here, where that is not the scheme of the kind's group; see ``schemes``."""
    stored: bool = False
    """Whether nearly all of a body is to be stored as protobuf."""
    api_version: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "api_version", str(self.gvk.group_version))

    @property
    def knowing(self) -> str:
        """Which scheme knows the kinds here."""
        return self.scheme or self.gvk.group

    def unreadable(self, gvk: GroupVersionKind, why: str) -> errors.StatusError:
        """The refusal of a body whose kind could be read and whose content could not."""
        return cannot_handle(gvk, self, why)

    def strict_error(self, gvk: GroupVersionKind, why: str) -> errors.StatusError:
        """The refusal of a body with fields that stand twice or that nobody knows."""
        return self.unreadable(gvk, why)

    def unrecognized(self, why: str, data: bytes) -> errors.StatusError:
        """The refusal of a body whose kind could not be read."""
        return errors.bad_request(
            f"the object provided is unrecognized (must be of type {self.gvk.kind}): {why} ({summarize(data)})"
        )

    def is_named_in(self, value: Any) -> bool:
        """Whether a parsed body says that it is of this kind and version, as most do, and nothing else can be meant."""
        return (
            value.__class__ is dict
            and value.get("kind") == self.gvk.kind
            and value.get("apiVersion") == self.api_version
            and value.keys() <= _USUAL
        )

    def identify(self, value: Any, data: bytes, *, lenient: bool = False) -> GroupVersionKind:
        """The kind of a parsed body. Raises the Status for one that is not taken here in any version.

        ``lenient``: whether the client wants nothing told of fields; that changes how some bodies are refused.
        """
        gvk = interpret(value, self, data)
        if not gvk.version:
            raise cannot_handle(gvk, self, versionless(data))
        if not self._takes(gvk) and (refusal := _unconvertible(gvk, self)) is not None:
            if (known := find_kind(self.knowing, gvk)) is not None:
                _decode(value, gvk, replace(self, struct=known))
            raise refusal
        return gvk

    def reader(self, gvk: GroupVersionKind) -> Expected:
        """What reads a body of this kind: one of another version is refused only after it was read as what it is."""
        known = None if self._takes(gvk) else find_kind(self.knowing, gvk)
        return self if known is None else replace(self, struct=known)

    def check_version(self, gvk: GroupVersionKind) -> None:
        """Raise the Status for a body of a version that is not taken here."""
        if not self._takes(gvk):
            raise mismatch(gvk, self)

    def _takes(self, gvk: GroupVersionKind) -> bool:
        return gvk == self.gvk or gvk in self.also

    def decode(
        self, value: Any, *, owned: bool = False, applied: bool = False, stored: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], StrictErrors | None]:
        """The object by its schema, and what a strict decoder would say about it. Raises ``DecodeError``.

        ``owned`` allows the object to be made of the value's own parts, and not to look into those that are as in the
        ``stored`` one. What an apply gives is no body: custom resources keep its nulls.
        """
        try:
            obj, unknown = decode(self.struct, value, noting=True, owned=owned, stored=stored)
        except DecodeError as error:
            raise gravest(self.struct, value, error) from None
        return obj, (lambda: strict_errors(self, value)) if unknown else None


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
    obj, unknown = _decode(value, gvk, reader, text, stored if gvk is expected.gvk else None)
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


def _decode(
    value: Any, gvk: GroupVersionKind, expected: Expected, text: bytes = b"", stored: dict[str, Any] | None = None
) -> tuple[dict[str, Any], StrictErrors | None]:
    """The object, and what was let pass. A number that is refused is quoted from the JSON ``text``."""
    try:
        obj, unknown = expected.decode(value, owned=True, stored=stored)
    except DecodeError as error:
        error.found = go_json.as_written(error.found, text)
        raise expected.unreadable(gvk, str(error)) from None
    obj["kind"] = gvk.kind
    obj["apiVersion"] = expected.api_version if gvk is expected.gvk else str(gvk.group_version)
    return obj, unknown


def interpret(value: Any, expected: Expected, data: bytes) -> GroupVersionKind:
    """The kind the body says it is, the expected one where it says nothing."""
    if value is None:
        return expected.gvk
    try:
        kind, version = read_type_meta(value)
    except ValueError as error:
        raise expected.unrecognized(str(error), data) from None
    try:
        gv = parse_group_version(version)
    except ValueError as error:
        raise expected.unrecognized(str(error), data) from None
    own = expected.gvk
    if not gv.version and gv.group in ("", own.group):
        gv = own.group_version
    return GroupVersionKind(gv.group, gv.version, kind or own.kind)


def versionless(data: bytes) -> str:
    """Why a body is refused whose apiVersion is a group and a slash."""
    return f"Object 'apiVersion' is missing in '{data.decode('utf-8', 'replace')}'"


def read_type_meta(value: Any) -> tuple[str, str]:
    """Kind and apiVersion that a body gives, empty where it gives none. Raises ``ValueError`` in Go's words."""
    if not isinstance(value, dict):
        why = f"json: cannot unmarshal {json_type(value)} into Go value of type {TYPE_META}"
        raise ValueError(f"couldn't get version/kind; json parse error: {why}")
    kind, version = value.get("kind"), value.get("apiVersion")
    if not value.keys() <= _USUAL:
        kind, version = _in_any_case(value, "kind"), _in_any_case(value, "apiVersion")
    for name, given in _type_fields(value, kind, version):
        if given is not None and not isinstance(given, str):
            why = f"json: cannot unmarshal {json_type(given)} into Go struct field .{name} of type string"
            raise ValueError(f"couldn't get version/kind; json parse error: {why}")
    return kind or "", version or ""


def _type_fields(value: dict[str, Any], kind: Any, version: Any) -> Iterable[tuple[str, Any]]:
    """Both fields, in the order of the body: of two that are wrong the first is told."""
    fields = {"kind": kind, "apiVersion": version}
    if kind.__class__ is str or version.__class__ is str:  # one of them is right: nothing depends on the order
        return fields.items()
    return [(name, fields[name]) for name in sorted(fields, key=[*value, *fields].index)]


def _in_any_case(value: dict[str, Any], name: str) -> Any:
    """What stands last under a name. Only the type of an object is found whatever the case."""
    named = [given for key, given in value.items() if key == name or key.lower() == name.lower()]
    return next((given for given in reversed(named) if given is not None), None)


def mismatch(gvk: GroupVersionKind, expected: Expected) -> errors.StatusError:
    """Why an object of another kind or version cannot be taken here."""
    return _unconvertible(gvk, expected) or other_version(gvk, expected)


def other_version(gvk: GroupVersionKind, expected: Expected) -> errors.StatusError:
    """The refusal of a body of another version than that of its path."""
    return errors.bad_request(
        f"the API version in the data ({gvk.group_version}) does not match the expected API version "
        f"({expected.gvk.group_version})"
    )


def _unconvertible(gvk: GroupVersionKind, expected: Expected) -> errors.StatusError | None:
    """The refusal of a kind that cannot become the expected one; None for another version of that."""
    known = find_kind(expected.knowing, gvk)
    if known is None:
        return cannot_handle(gvk, expected, unknown_kind(expected.knowing, gvk))
    why = unknown_conversion(gvk, known, expected)
    return cannot_handle(gvk, expected, why) if why else None


def unknown_conversion(gvk: GroupVersionKind, known: Struct, expected: Expected) -> str:
    """Why an object of a known kind cannot become one of the expected kind; empty for another version of that."""
    own = expected.gvk
    if gvk.kind == own.kind and _is_same_kind(own, gvk):
        return ""
    return f"converting ({known.go}) to ({expected.internal_package}.{own.kind}): unknown conversion"


def _is_same_kind(one: GroupVersionKind, other: GroupVersionKind) -> bool:
    """Whether kinds of one name are versions of one kind."""
    homes = [_MOVED.get((gvk.group, gvk.kind), gvk.group) for gvk in (one, other)]
    return one.group == other.group or homes[0] == homes[1] or one.group == homes[1] or other.group == homes[0]


def cannot_handle(gvk: GroupVersionKind, expected: Expected, why: str) -> errors.StatusError:
    """The 400 for a body whose kind could be read and whose content could not."""
    return errors.bad_request(
        f"{gvk.kind} in version {quote(gvk.version)} cannot be handled as a {expected.gvk.kind}: {why}"
    )


def summarize(data: bytes) -> str:
    """The beginning of a body as error messages show it: text if it looks like JSON, else hexadecimal."""
    if not data:
        return "<empty>"
    more = " ..." if len(data) > _SHOWN else ""
    start = data[:_SHOWN]
    if data[:1] != b"{":
        return start.hex() + more
    return _UNREADABLE.sub("\ufffd", start.decode("utf-8", "surrogateescape")) + more


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


def strict_errors(expected: Expected, value: Any, *, quoted: bool = True) -> list[str]:
    """What a strict decoder says about fields nobody knows; one of strategic patches quotes no characters in them."""
    paths = islice(unknown_fields(expected.struct, value), MOST_ERRORS)
    return [f"unknown field {quote(path)}" if quoted else f'unknown field "{path}"' for path in paths]


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
