"""The kind that an endpoint takes, and what of a body's kind and version is refused there.

Most bodies say the expected kind and version, or nothing. Others may be of an older version of the same shape, or of
one that is refused only after it was read as what it is: so kube-apiserver does, and so it words its refusals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final

from pilothouse.endpoints.negotiation import ALL_FORMATS
from pilothouse.endpoints.schemes import find_kind, unknown_kind
from pilothouse.machinery import errors, go_json
from pilothouse.machinery.go_json import json_type
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupVersionKind, parse_group_version
from pilothouse.machinery.schema.decoding import DecodeError, decode
from pilothouse.machinery.schema.own_errors import gravest
from pilothouse.machinery.schema.repetition import MOST_ERRORS
from pilothouse.machinery.schema.types import Struct
from pilothouse.machinery.schema.unknown import unknown_fields

_SHOWN: Final = 30
_UNREADABLE: Final = re.compile("[\udc80-\udcff]")
"""Bytes that are no character, each of which Go shows as one."""
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
                decode_as(value, gvk, replace(self, struct=known))
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


def decode_as(
    value: Any, gvk: GroupVersionKind, expected: Expected, text: bytes = b"", stored: dict[str, Any] | None = None
) -> tuple[dict[str, Any], StrictErrors | None]:
    """A body as an object of that kind, and what was let pass. A refused number is quoted from the JSON ``text``."""
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


def strict_errors(expected: Expected, value: Any, *, quoted: bool = True) -> list[str]:
    """What a strict decoder says about fields nobody knows; one of strategic patches quotes no characters in them."""
    paths = islice(unknown_fields(expected.struct, value), MOST_ERRORS)
    return [f"unknown field {quote(path)}" if quoted else f'unknown field "{path}"' for path in paths]
