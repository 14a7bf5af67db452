"""The catalogue of enumerated fields fits the catalogue of types."""

from __future__ import annotations

import pytest

from pilothouse.apis import catalogue, enumerations, types
from pilothouse.machinery.schema.types import ListOf, MapOf, Scalar, Type

LINES = catalogue.read("enums.txt").splitlines()


def leaf(kind: Type) -> Type:
    while isinstance(kind, ListOf | MapOf):
        kind = kind.item if isinstance(kind, ListOf) else kind.value
    return kind


@pytest.mark.parametrize("line", LINES)
def test_every_line_is_about_a_string_field(line: str) -> None:
    owner, name, _ = line.split(" ", 2)
    kind = leaf(types.struct(owner).fields[name].type)
    assert isinstance(kind, Scalar)
    assert kind.kind == "string"
    values = enumerations.values_of(owner)[name]
    assert values == sorted(set(values))


@pytest.mark.parametrize(
    ("owner", "field", "values"),
    [
        ("core.v1.PodSpec", "restartPolicy", ["Always", "Never", "OnFailure"]),
        ("core.v1.ServiceSpec", "ipFamilies", ["", "IPv4", "IPv6"]),
        ("admissionregistration.v1.RuleWithOperations", "operations", ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"]),
    ],
)
def test_values(owner: str, field: str, values: list[str]) -> None:
    assert enumerations.values_of(owner)[field] == values


def test_values_may_have_spaces() -> None:
    usages = enumerations.values_of("certificates.v1.CertificateSigningRequestSpec")["usages"]
    assert usages[:3] == ["any", "cert sign", "client auth"]


def test_types_without_enumerated_fields() -> None:
    assert not enumerations.values_of("core.v1.ConfigMap")
    assert not enumerations.values_of("no.v1.SuchType")
