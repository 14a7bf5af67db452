import pytest

from pilothouse.server.debugging_pages import choose

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
