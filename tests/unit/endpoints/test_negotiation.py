"""Which form the client gets."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.endpoints import negotiation
from pilothouse.endpoints.negotiation import (
    ALL_FORMATS,
    ALL_TRANSFORMS,
    JSON,
    METADATA_ALONE,
    NO_PROTOBUF,
    PROTOBUF,
    YAML,
    Media,
    negotiate,
)
from pilothouse.endpoints.request import APIRequest
from pilothouse.machinery.errors import StatusError

Ask = Callable[..., APIRequest]
TABLE = "as=Table;g=meta.k8s.io;v=v1"


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("", Media()),
        ("*/*", Media()),
        ("application/json", Media()),
        ("application/yaml", Media(YAML)),
        ("application/vnd.kubernetes.protobuf", Media(PROTOBUF)),
        ("application/vnd.kubernetes.protobuf,application/json", Media(PROTOBUF)),
        ("text/html, application/json", Media()),
        ("application/json;q=0.5, application/yaml;q=0.9", Media(YAML)),
        ("application/json;q=0", Media()),
        ("application/json;q=x", Media()),
        ("application/json;q=x,application/yaml;q=0.1", Media(YAML)),
        ("application/json;q=1_0,application/yaml;q=0.1", Media(YAML)),
        ("application/json;q= 1,application/yaml;q=0.1", Media(YAML)),
        ("*/*, application/yaml", Media(YAML)),
        ("*/*, application/yaml;q=0.1", Media(YAML)),
        ("application/yaml;q=0.1, */*", Media()),
        ("application/*, application/yaml;q=0.1", Media(YAML)),
        ("application/*;q=0.2, */*", Media()),
        ("application/json;stream=watch", Media()),
        ("application/json;stream=other,application/yaml", Media(YAML)),
        ("application/yaml;stream=watch,application/json", Media()),
        ("application/json;sv=v1", Media()),
        ("application/json;sv=v2,application/yaml", Media(YAML)),
        ("application/json;g=meta.k8s.io;v=v1,application/yaml", Media(YAML)),
        ("application/json;as=;pretty=1", Media(pretty=True)),
        ("application/json;as=Table=x", Media()),
        ("application/json;unknown=1", Media()),
        ("application/json/x,application/yaml", Media(YAML)),
        (f"application/json;{TABLE}", Media(JSON, "Table")),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", Media(JSON, "Table", "v1beta1")),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", Media()),
        ("application/json;as=Other;v=v1;g=meta.k8s.io,application/yaml", Media(YAML)),
        (f"application/vnd.kubernetes.protobuf;{TABLE},application/json", Media()),
        (
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            Media(PROTOBUF, "PartialObjectMetadataList"),
        ),
    ],
)
def test_forms(ask: Ask, accept: str, wanted: Media) -> None:
    assert negotiate(ask(accept=accept) if accept else ask(), ALL_FORMATS, transforms=ALL_TRANSFORMS) == wanted


@pytest.mark.parametrize(
    ("accept", "message"),
    [
        (
            f"application/json;{TABLE.replace('v1', 'v9')}",
            "only the following media types are accepted: application/json",
        ),
        ("text/html", "406: Not Acceptable\n\nAvailable representations: application/json"),
        ("application/*", "406: Not Acceptable"),
        ("*", "406: Not Acceptable"),
        ("application/json;stream=other", "only the following media types are accepted: application/json"),
        ("application/json;v=v1", "only the following media types are accepted: application/json"),
        ("APPLICATION/JSON", "406: Not Acceptable"),
    ],
)
def test_refusals(ask: Ask, accept: str, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        negotiate(ask(accept=accept), ALL_FORMATS, transforms=ALL_TRANSFORMS)
    assert caught.value.code == 406
    assert caught.value.message.startswith(message)


def test_an_endpoint_without_columns_gives_metadata_but_no_table(ask: Ask) -> None:
    metadata = f"application/json;{TABLE.replace('Table', 'PartialObjectMetadata')}"
    asked = ask(accept=f"application/json;{TABLE},{metadata}")
    assert negotiate(asked, ALL_FORMATS, transforms=METADATA_ALONE) == Media(JSON, "PartialObjectMetadata")
    with pytest.raises(StatusError):
        negotiate(ask(accept=f"application/json;{TABLE}"), ALL_FORMATS, transforms=METADATA_ALONE)


@pytest.mark.parametrize("accept", ["application/*", "*", "*/*"])
def test_custom_resources_know_wildcards(ask: Ask, accept: str) -> None:
    assert negotiate(ask(accept=accept), NO_PROTOBUF, transforms=ALL_TRANSFORMS) == Media()


@pytest.mark.parametrize("accept", ["application/*", "*"])
def test_what_is_not_routed_knows_wildcards(ask: Ask, accept: str) -> None:
    assert negotiate(ask(accept=accept), ALL_FORMATS, routed=False) == Media()
    with pytest.raises(StatusError, match=r"^only the following media types are accepted: application/json, "):
        negotiate(ask(accept="text/html"), ALL_FORMATS, routed=False)


def test_a_transform_that_is_not_offered(ask: Ask) -> None:
    with pytest.raises(StatusError):
        negotiate(ask(accept=f"application/json;{TABLE}"), ALL_FORMATS)


@pytest.mark.parametrize(
    ("target", "agent", "pretty"),
    [
        ("/x", "kubectl/v1", False),
        ("/x", "curl/8", True),
        ("/x", "Mozilla/5.0 (X)", True),
        ("/x?pretty=false", "curl/8", False),
        ("/x?pretty=true", "kubectl/v1", True),
        ("/x?pretty=yes", "curl/8", False),
        ("/x?pretty=", "curl/8", True),
    ],
)
def test_pretty(ask: Ask, target: str, agent: str, pretty: bool) -> None:
    assert negotiate(ask("GET", target, user_agent=agent)).pretty is pretty


def test_readings_are_kept_within_bounds(ask: Ask) -> None:
    for number in range(2000):
        negotiate(ask(accept=f"application/json;x={number}"))
    negotiate(ask(accept="application/json;x=" + "y" * 100_000))
    assert len(negotiation._readings) <= 512
    assert max(len(accept) for accept, *_ in negotiation._readings) <= 1024


@given(st.text(alphabet='aplictonjsy/*;,=q."v1 ', max_size=60), st.booleans())
def test_any_header_is_read(accept: str, routed: bool) -> None:
    media = negotiation._read(accept, ALL_FORMATS, True, routed)
    assert media is None or media.format in ALL_FORMATS
