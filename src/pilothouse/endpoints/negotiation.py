"""Which form the client gets: JSON, YAML or protobuf; the object itself, a Table, or its metadata alone.

``Accept`` headers are few and repeat for ever, so readings are kept: an ordinary request pays one dictionary look-up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from pilothouse.endpoints.request import APIRequest
from pilothouse.machinery import errors

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
ALL_FORMATS: Final = (JSON, YAML, PROTOBUF)
NO_PROTOBUF: Final = (JSON, YAML)

TABLE: Final = "Table"
METADATA: Final = "PartialObjectMetadata"
METADATA_LIST: Final = "PartialObjectMetadataList"
NO_TRANSFORMS: Final[frozenset[str]] = frozenset()
METADATA_ALONE: Final = frozenset({METADATA, METADATA_LIST})
"""What every endpoint can give, those too that show no table."""
ALL_TRANSFORMS: Final = METADATA_ALONE | {TABLE}
_CONVERTING: Final = frozenset({"as", "g", "v"})
_AGGREGATED: Final = ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")
_META_VERSIONS: Final = frozenset({"v1", "v1beta1"})
_SORTED_BY_INSERTION: Final = 12
_KEPT_READINGS: Final = 512
_KEPT_LENGTH: Final = 1024
_MOST_CLAUSES: Final = 256
"""How much of an Accept header is read: media ranges, and parameters of each. Nobody means what follows."""


@dataclass(frozen=True, slots=True)
class Media:
    """The chosen form. ``transform`` is empty for the object itself; ``version`` is the transform's API version."""

    format: str = JSON
    transform: str = ""
    version: str = "v1"
    pretty: bool = False
    profile: str = ""
    """Of aggregated discovery: ``nopeer`` for that of the asked server alone."""

    @property
    def content_type(self) -> bytes:
        return self.format.encode()


PLAIN_JSON: Final = Media()
INDENTED_JSON: Final = Media(pretty=True)
"""What a client gets to read that takes none of the known forms."""
_readings: dict[tuple[bytes, tuple[str, ...], frozenset[str], bool], Media | None] = {}
_STREAMS: Final = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")


def negotiate(
    request: APIRequest,
    formats: tuple[str, ...] = ALL_FORMATS,
    *,
    transforms: frozenset[str] = NO_TRANSFORMS,
    routed: bool = True,
) -> Media:
    """The form for this request, or the 406 Status. What is not ``routed`` as resources are is less strict."""
    accept = request.headers.get(b"accept", b"")
    key = (accept, formats, transforms, routed)
    try:
        media = _readings[key]
    except KeyError:
        media = _read(accept.decode("latin-1"), formats, transforms, routed)
        if len(accept) <= _KEPT_LENGTH:
            if len(_readings) >= _KEPT_READINGS:
                _readings.clear()
            _readings[key] = media
    if media is None:
        raise _not_acceptable(request, accept.decode("latin-1"), formats) if routed else errors.not_acceptable(formats)
    if wants_pretty(request):
        return Media(media.format, media.transform, media.version, True)
    return media


def _not_acceptable(request: APIRequest, accept: str, formats: tuple[str, ...]) -> errors.StatusError:
    """Two refusals: no known media type at all, or a known one with demands that cannot be met."""
    if formats is NO_PROTOBUF:
        return errors.not_acceptable(ALL_FORMATS)
    if _is_known(accept, formats):
        return errors.not_acceptable(formats)
    listed = (*formats, *_STREAMS) if request.info.verb in ("list", "watch") else formats
    return _unrouted_acceptance(listed)


def _unrouted_acceptance(listed: tuple[str, ...]) -> errors.StatusError:
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(listed)}"
    return errors.StatusError(406, "NotAcceptable", message, {})


def require_acceptable_stream(request: APIRequest, produced: str) -> None:
    """The 406 of who takes no stream: its route offers ``produced`` too, its endpoint asks for a form of objects."""
    accept = request.headers.get(b"accept", b"").decode("latin-1")
    listed = (produced, *ALL_FORMATS)
    if accept and not any(_media_type(clause) in (*listed, "*/*") for clause in _split(accept, ",")):
        raise _unrouted_acceptance(listed)
    negotiate(request, ALL_FORMATS, transforms=METADATA_ALONE, routed=False)


def is_routed_content(given: str, kinds: tuple[str, ...]) -> bool:
    """Whether routing finds a handler for a content type, in which it takes spaces and lists that no handler does."""
    return any(_media_type(part) in kinds for part in _split(given, ","))


def unrouted_content() -> errors.StatusError:
    """What the router says where no route takes a content type."""
    return errors.StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def comes_to_endpoint(request: APIRequest, formats: tuple[str, ...]) -> bool:
    """Whether the router lets a request through, be it that the endpoint refuses it then."""
    accept = request.headers.get(b"accept", b"")
    return not accept or _is_known(accept.decode("latin-1"), formats)


def _is_known(accept: str, formats: tuple[str, ...]) -> bool:
    """Whether any media type is known; the router of built-in resources knows no partial wildcards."""
    if formats is not ALL_FORMATS:
        return True
    return any(_media_type(clause) in (*formats, "*/*") for clause in _split(accept, ","))


def _split(text: str, separator: str) -> list[str]:
    return text.split(separator, _MOST_CLAUSES)[:_MOST_CLAUSES]


def _media_type(clause: str) -> str:
    return clause.partition(";")[0].strip()


def wants_pretty(request: APIRequest) -> bool:
    """Asked for by ``?pretty``, or assumed of a person at a terminal or browser."""
    if request.query and "pretty" in request.query:
        value = request.options.first("pretty")
        if value:
            return value in ("1", "t", "T", "true", "TRUE", "True")
    agent = request.headers.get(b"user-agent", b"")
    return agent.startswith((b"curl", b"Wget", b"Mozilla/5.0"))


def _read(accept: str, formats: tuple[str, ...], transforms: frozenset[str], routed: bool) -> Media | None:
    if not accept:
        return Media(formats[0])
    if routed and not _is_known(accept, formats):
        return None
    for clause in read_clauses(accept):
        for format in ALL_FORMATS:
            if clause.covers(format):
                media = _with_parameters(format, clause.parameters, transforms)
                if media is not None and (format in formats or media.transform):
                    return media
    return None


class Clause(NamedTuple):
    """One media range of an Accept header."""

    type: str
    subtype: str
    parameters: dict[str, str]
    quality: float

    def covers(self, format: str) -> bool:
        type, _, subtype = format.partition("/")
        return (self.type == "*" and self.subtype == "*") or (self.type == type and self.subtype in (subtype, "*"))

    def precedes(self, other: Clause) -> bool:
        return (
            self.quality > other.quality
            or (self.type != "*" and other.type == "*")
            or (self.subtype != "*" and other.subtype == "*")
        )


def read_clauses(accept: str) -> list[Clause]:
    """The media ranges of an Accept header that can be read, the preferred ones first."""
    clauses = map(_clause, _split(accept, ","))
    return _by_preference([clause for clause in clauses if clause is not None])


def _by_preference(clauses: list[Clause]) -> list[Clause]:
    """By quality, wildcards last. The two may contradict each other, so the way of sorting decides: by insertion."""
    if len(clauses) > _SORTED_BY_INSERTION:
        return sorted(clauses, key=lambda clause: (-clause.quality, clause.type == "*", clause.subtype == "*"))
    chosen: list[Clause] = []
    for clause in clauses:
        at = len(chosen)
        while at and clause.precedes(chosen[at - 1]):
            at -= 1
        chosen.insert(at, clause)
    return chosen


def _clause(text: str) -> Clause | None:
    media_range, *rest = _split(text, ";")
    type, *subtypes = (part.strip(" ") for part in media_range.split("/"))
    if len(subtypes) != 1 or not subtypes[0]:
        if subtypes not in ([], [""]) or type != "*":
            return None
        subtypes = ["*"]
    parameters = {}
    quality = 1.0
    for part in rest:
        name, *values = part.split("=")
        if len(values) != 1 or not values[0]:
            continue
        if name.strip(" ") == "q":
            quality = _quality(values[0])
        else:
            parameters[name.strip(" ")] = values[0].strip(" ")
    return Clause(type, subtypes[0], parameters, quality)


def _quality(text: str) -> float:
    try:
        return float(text) if text == text.strip() and "_" not in text else 0.0
    except ValueError:
        return 0.0


def negotiate_aggregated(request: APIRequest) -> Media | None:
    """The form of aggregated discovery, if the client takes it in any; only its version 2 is served."""
    accept = request.headers.get(b"accept", b"")
    if b"APIGroupDiscoveryList" not in accept:
        return None
    for clause in read_clauses(accept.decode("latin-1")):
        asked = clause.parameters
        if (asked.get("as"), asked.get("g"), asked.get("v")) != _AGGREGATED:
            continue
        for format in ALL_FORMATS:
            plain = {name: value for name, value in asked.items() if name not in _CONVERTING}
            if clause.covers(format) and (media := _with_parameters(format, plain, NO_TRANSFORMS)) is not None:
                pretty = media.pretty or wants_pretty(request)
                return Media(format, pretty=pretty, profile=asked.get("profile", ""))
    return None


def _with_parameters(format: str, parameters: dict[str, str], transforms: frozenset[str]) -> Media | None:
    """None where the clause asks for something this endpoint cannot do."""
    stream, version = parameters.get("stream"), parameters.get("sv")
    if (stream and (stream != "watch" or format == YAML)) or (version and not (transforms and version == "v1")):
        return None
    pretty = parameters.get("pretty") == "1"
    if not parameters.keys() & _CONVERTING:
        return Media(format, pretty=pretty)
    kind = parameters.get("as", "")
    if kind not in transforms or (kind == TABLE and format == PROTOBUF):
        return None
    if parameters.get("g") != "meta.k8s.io" or parameters.get("v") not in _META_VERSIONS:
        return None
    return Media(format, kind, parameters["v"], pretty)
