"""Files named by flags: whatever is in them, a parser reads them or says what is wrong, and nothing else happens."""

from __future__ import annotations

import base64
import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pilothouse.audit.policy import parse_policy
from pilothouse.authn.authentication_configuration import parse_configuration as parse_authentication
from pilothouse.authn.webhook_kubeconfig import read_webhook_kubeconfig
from pilothouse.authz.abac import parse_policies
from pilothouse.authz.authorization_configuration import parse_configuration as parse_authorization
from pilothouse.storage.encryption.configuration import parse_configuration as parse_encryption

SECRET = base64.b64encode(b"0123456789abcdef").decode()
API = "apiserver.config.k8s.io/v1"
GOOD: dict[str, dict[str, Any]] = {
    "audit": {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "omitManagedFields": True,
        "rules": [
            {
                "level": "Metadata",
                "users": ["a"],
                "userGroups": ["b"],
                "verbs": ["get"],
                "namespaces": ["n"],
                "resources": [{"group": "apps", "resources": ["deployments/*"], "resourceNames": ["x"]}],
                "omitStages": ["Panic"],
                "omitManagedFields": False,
            },
            {"level": "Request", "nonResourceURLs": ["/a*"]},
        ],
    },
    "authentication": {
        "apiVersion": API,
        "kind": "AuthenticationConfiguration",
        "jwt": [
            {
                "issuer": {
                    "url": "https://a",
                    "discoveryURL": "https://b",
                    "audiences": ["x", "y"],
                    "audienceMatchPolicy": "MatchAny",
                },
                "claimValidationRules": [
                    {"claim": "hd", "requiredValue": "x"},
                    {"expression": "claims.exp > 1.0", "message": "m"},
                ],
                "claimMappings": {
                    "username": {"claim": "sub", "prefix": ""},
                    "groups": {"expression": "claims.groups"},
                    "uid": {"claim": "uid"},
                    "extra": [{"key": "example.com/a", "valueExpression": "claims.a"}],
                },
                "userValidationRules": [{"expression": "user.username != 'x'", "message": "m"}],
            }
        ],
        "anonymous": {"enabled": True, "conditions": [{"path": "/livez"}]},
    },
    "authorization": {
        "apiVersion": API,
        "kind": "AuthorizationConfiguration",
        "authorizers": [
            {"type": "Node", "name": "node"},
            {
                "type": "Webhook",
                "name": "hook",
                "webhook": {
                    "timeout": "3s",
                    "authorizedTTL": "5m",
                    "unauthorizedTTL": "30s",
                    "cacheAuthorizedRequests": True,
                    "cacheUnauthorizedRequests": False,
                    "subjectAccessReviewVersion": "v1",
                    "matchConditionSubjectAccessReviewVersion": "v1",
                    "failurePolicy": "Deny",
                    "connectionInfo": {"type": "InClusterConfig"},
                    "matchConditions": [{"expression": "request.user != 'x'"}],
                },
            },
        ],
    },
    "encryption": {
        "apiVersion": API,
        "kind": "EncryptionConfiguration",
        "resources": [
            {
                "resources": ["secrets", "widgets.example.com"],
                "providers": [
                    {"aescbc": {"keys": [{"name": "a", "secret": SECRET}]}},
                    {"kms": {"apiVersion": "v2", "name": "k", "endpoint": "unix:///x", "timeout": "3s"}},
                    {"identity": {}},
                ],
            }
        ],
    },
    "abac": {
        "apiVersion": "abac.authorization.kubernetes.io/v1beta1",
        "kind": "Policy",
        "spec": {"user": "a", "group": "b", "readonly": True, "namespace": "n", "resource": "r", "apiGroup": "g"},
    },
    "kubeconfig": {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "clusters": [{"name": "x", "cluster": {"server": "https://x:1/y", "insecure-skip-tls-verify": True}}],
        "users": [{"name": "x", "user": {"token": "t", "username": "", "password": ""}}],
    },
}
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 1 << 70, "", "x", "*", "/", "https://[", "\x00", "ä", [], [None], [[]], {},
    {"a": {}}, {"": None}, ["x", 1], "1h", "-1s", "99999999999h", [{"name": []}], "v1",
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document."""
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


def disturbed(document: dict[str, Any], chance: random.Random) -> Any:
    """The document with something odd in one or two places, or with a place left out or renamed."""
    result: Any = copy.deepcopy(document)
    for _ in range(chance.choice((1, 1, 2))):
        path = chance.choice([path for path in places(result) if path] or [()])
        if not path:
            return copy.deepcopy(chance.choice(ODD))
        parent = result
        for key in path[:-1]:
            parent = parent[key]
        action = chance.random()
        if action < 0.7 or isinstance(parent, list):
            parent[path[-1]] = copy.deepcopy(chance.choice(ODD))
        elif action < 0.85:
            del parent[path[-1]]
        else:
            parent[f"{path[-1]}x"] = parent.pop(path[-1])
    return result


def parsers(folder: Path) -> dict[str, Callable[[bytes], object]]:
    def kubeconfig(data: bytes) -> object:
        path = folder / "kubeconfig"
        path.write_bytes(data)
        return read_webhook_kubeconfig(str(path))

    return {
        "audit": parse_policy,
        "authentication": parse_authentication,
        "authorization": parse_authorization,
        "encryption": parse_encryption,
        "abac": lambda data: parse_policies(data, "f"),
        "kubeconfig": kubeconfig,
    }


@pytest.mark.parametrize("kind", list(GOOD))
def test_disturbed_files_are_read_or_refused(kind: str, tmp_path: Path) -> None:
    parse = parsers(tmp_path)[kind]
    assert parse(json.dumps(GOOD[kind]).encode())
    chance = random.Random(kind)
    refused = 0
    for _ in range(600):
        document = disturbed(GOOD[kind], chance)
        try:
            parse(json.dumps(document).encode())
        except (ValueError, OSError) as error:
            refused += 1
            assert SECRET not in str(error)
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error}: {json.dumps(document)}") from error
    assert refused > 100


@pytest.mark.parametrize("kind", list(GOOD))
@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"\xff\xfe", b"[", b"a: &a [*a]", b"- 1", b"x", b"{" * 5000, b"a: b: c"]
)
def test_files_that_are_nothing(kind: str, data: bytes, tmp_path: Path) -> None:
    try:
        parsers(tmp_path)[kind](data)
    except (ValueError, OSError):
        return
    assert kind == "abac", "an empty list of policies is one"
    assert not data
