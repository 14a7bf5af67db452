"""Refused structs with the names and the order of kube-apiserver's internal types."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis import types
from pilothouse.apis.core.internal_form import internal_form
from pilothouse.machinery.schema.decoding import decode


@pytest.mark.parametrize(
    ("type_name", "value", "shown"),
    [
        ("core.v1.NodeSpec", {"externalID": "x"}, {"DoNotUseExternalID": "x", "PodCIDRs": None}),
        (
            "flowcontrol.v1.Subject",
            {"kind": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": "a"}},
            {"ServiceAccount": {"Namespace": "n", "Name": "a"}, "User": None},
        ),
        ("flowcontrol.v1.ResourcePolicyRule", {"apiGroups": ["*"]}, {"APIGroups": ["*"], "Verbs": None}),
        ("resource.v1.DeviceSelector", {"cel": {"expression": "true"}}, {"CEL": {"Expression": "true"}}),
        (
            "certificates.v1beta1.PodCertificateRequestSpec",
            {"signerName": "a.b/c"},
            {"PKIXPublicKey": None, "ProofOfPossession": None, "StubPKCS10Request": None},
        ),
        ("core.v1.PodSpec", {"serviceAccount": "s"}, {"DeprecatedServiceAccount": "s"}),
    ],
)
def test_names(type_name: str, value: dict[str, Any], shown: dict[str, Any]) -> None:
    found = internal_form(type_name, value)
    assert {key: found[key] for key in shown} == shown


@pytest.mark.parametrize(("given", "shown"), [({"hostnames": []}, []), ({}, None), ({"hostnames": None}, None)])
def test_what_was_given_as_empty_shows_as_empty(given: dict[str, Any], shown: Any) -> None:
    alias = decode(types.struct("core.v1.HostAlias"), {"ip": "10.0.0.1", **given}, noting=True)[0]
    assert internal_form("core.v1.HostAlias", alias) == {"IP": "10.0.0.1", "Hostnames": shown}
