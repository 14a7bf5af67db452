"""Operations of paths that are no resources: discovery, the version, keys of the token issuer, logs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pilothouse.openapi.naming import model_name
from pilothouse.openapi.operations import STRING, MediaTypes, Operation, ok
from pilothouse.openapi.parameters import Parameter
from pilothouse.openapi.schemas import VERSION_INFO

_JSON: Final = ("application/json",)
_LOG_PATH: Final = Parameter("logpath", "path", "string", "path to the log")


def plain_operations(groups: Iterable[str], media: MediaTypes, *, logs: bool = False) -> dict[str, list[Operation]]:
    """By the name of the document they are in: ``version``, ``apis/apps`` …"""
    found = {
        ".well-known/openid-configuration": [_issuer(
            "/.well-known/openid-configuration/", "getServiceAccountIssuerOpenIDConfiguration",
            "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'", _JSON,
        )],
        "api": [_discovery("/api/", "getAPIVersions", "get available API versions", "APIVersions", media)],
        "apis": [_discovery("/apis/", "getAPIVersions", "get available API versions", "APIGroupList", media)],
        "openid/v1/jwks": [_issuer(
            "/openid/v1/jwks/", "getServiceAccountIssuerOpenIDKeyset",
            "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)",
            ("application/jwk-set+json",),
        )],
        "version": [Operation(
            "/version/", "GET", "getCodeVersion", "get the version information for this server", [], ok(VERSION_INFO),
            _JSON, _JSON,
        )],
    }  # fmt: skip
    for group in groups:
        path = f"/apis/{group}/"
        found[f"apis/{group}"] = [_discovery(path, "getAPIGroup", "get information of a group", "APIGroup", media)]
    if logs:
        listing = _log("/logs/", "logFileListHandler", [])
        found["logs"] = [listing, _log("/logs/{logpath}", "logFileHandler", [_LOG_PATH])]
    return found


def _discovery(path: str, name: str, description: str, kind: str, media: MediaTypes) -> Operation:
    answer = ok(model_name(f"meta.v1.{kind}"))
    return Operation(path, "GET", name, description, [], answer, media.objects, media.objects)


def _issuer(path: str, name: str, description: str, produces: tuple[str, ...]) -> Operation:
    return Operation(path, "GET", name, description, [], ok(STRING), produces, ())


def _log(path: str, name: str, parameters: list[Parameter]) -> Operation:
    return Operation(path, "GET", name, "", parameters, [], (), ())
