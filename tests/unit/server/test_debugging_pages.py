from collections.abc import Callable

import pytest

from pilothouse.endpoints.request import APIRequest
from pilothouse.server.debugging_pages import _page, _status, _status_text, choose

Ask = Callable[..., APIRequest]
NAMED = "as=Statusz;v=v1beta1;g=config.k8s.io"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", ("text/plain", "")),
        ("*/*", ("text/plain", "")),
        ("text/plain", ("text/plain", "")),
        ("text/*", ("text/plain", "")),
        ("application/json", None),
        ("application/yaml", None),
        ("application/vnd.kubernetes.protobuf", None),
        ("text/html", None),
        (f"application/json;{NAMED}", ("application/json", "v1beta1")),
        (f"application/yaml; {NAMED}", ("application/yaml", "v1beta1")),
        ("application/json;as=Statusz;v=v1alpha1;g=config.k8s.io", ("application/json", "v1alpha1")),
        ("application/json;as=Statusz;v=v2;g=config.k8s.io", None),
        ("application/json;as=Flagz;v=v1beta1;g=config.k8s.io", None),
        (f"text/plain;{NAMED}", None),
        ("application/json, text/plain", ("text/plain", "")),
        (f"text/plain;q=0.5, application/json;{NAMED}", ("application/json", "v1beta1")),
        ("text/plain;q=x", ("text/plain", "")),
    ],
)
def test_structure_only_for_those_who_name_the_kind(accept: str, expected: tuple[str, str] | None) -> None:
    assert choose(accept, "Statusz") == expected


async def test_the_kind_is_named_in_the_content_type(ask: Ask) -> None:
    page = _page("flagz", "Flagz", lambda: {"flags": {"v": "0"}}, str)
    request = ask("GET", "/flagz", accept="application/yaml;as=Flagz;v=v1alpha1;g=config.k8s.io")
    response = await page(request)
    assert response.content_type == b"application/yaml;g=config.k8s.io;v=v1alpha1;as=Flagz"
    assert response.headers[0][0] == b"warning"


def test_people_read_dates_and_durations() -> None:
    text = _status_text({**_status(0.0, "1.37", ["/healthz", "/api/v1", "/"]), "uptimeSeconds": 3725})
    lines = text.splitlines()
    assert lines[1:3] == ["Started: Thu Jan  1 00:00:00 UTC 1970", "Up: 1 hr 02 min 05 sec"]
    assert lines[-1] == "Paths: /healthz"
