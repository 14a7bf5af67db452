"""``--authorization-config``: the chain of authorizers as a file, with several webhooks if need be.

Match conditions are compiled with the file: one that does not compile refuses it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pilothouse.authn.configuration_file import load_configuration, raise_errors
from pilothouse.authz.match_conditions import MatchConditions, compile_conditions
from pilothouse.machinery.field_errors import FieldError, Path, duplicate, invalid, not_supported, required
from pilothouse.machinery.names import check_dns1123_subdomain
from pilothouse.machinery.shapes import DURATION, Struct, Text
from pilothouse.machinery.times import TimeError, format_duration, parse_duration

TYPES: Final = ("ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook")
_WEBHOOK: Final = {
    "authorizedTTL": DURATION,
    "cacheAuthorizedRequests": bool,
    "unauthorizedTTL": DURATION,
    "cacheUnauthorizedRequests": bool,
    "timeout": DURATION,
    "subjectAccessReviewVersion": str,
    "matchConditionSubjectAccessReviewVersion": str,
    "failurePolicy": str,
    "connectionInfo": Struct("WebhookConnectionInfo", {"type": str, "kubeConfigFile": str}),
    "matchConditions": [Struct("WebhookMatchCondition", {"expression": str})],
}
_AUTHORIZER: Final = {"type": Text("AuthorizerType"), "name": str, "webhook": Struct("WebhookConfiguration", _WEBHOOK)}
_SHAPE: Final = Struct("AuthorizationConfiguration", {"authorizers": [Struct("AuthorizerConfiguration", _AUTHORIZER)]})
_SECOND: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """How a webhook is asked; times in seconds, 0 for answers that are not remembered."""

    kubeconfig: str
    version: str
    timeout: float
    authorized_ttl: float
    unauthorized_ttl: float
    deny_on_failure: bool
    conditions: MatchConditions | None = None


@dataclass(frozen=True, slots=True)
class ConfiguredAuthorizer:
    """One authorizer of the chain."""

    type: str
    name: str
    webhook: WebhookSettings | None = None


def authorizers_from_modes(modes: Sequence[str]) -> tuple[ConfiguredAuthorizer, ...]:
    """The chain of ``--authorization-mode``, without the settings of a webhook."""
    return tuple(ConfiguredAuthorizer(mode, mode.lower()) for mode in modes)


def parse_configuration(data: bytes, required_types: Sequence[str] = ()) -> tuple[ConfiguredAuthorizer, ...]:
    """Read and validate the file. After a change it must still name ``required_types``. Raises ``ValueError``."""
    try:
        document = load_configuration(data, "AuthorizationConfiguration", ("v1", "v1beta1", "v1alpha1"), _SHAPE)
    except ValueError as error:
        raise ValueError(f"failed to load AuthorizationConfiguration from file: {error}") from None
    entries = document.get("authorizers") or []
    raise_errors(_errors(entries))
    chain = tuple(_authorizer(entry) for entry in entries)
    problems = [
        f"expected name {entry.type.lower()} for authorizer {entry.type} instead of {entry.name}"
        for entry in chain
        if entry.type != "Webhook" and entry.name != entry.type.lower()
    ]
    missing = sorted(set(required_types) - {entry.type for entry in chain} - {"Webhook"})
    if missing:
        problems.append(f"missing required types: [{' '.join(missing)}]")
    if problems:
        raise ValueError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return chain


def _authorizer(entry: Mapping[str, Any]) -> ConfiguredAuthorizer:
    webhook = entry.get("webhook")
    if webhook is None:
        return ConfiguredAuthorizer(entry["type"], entry["name"])
    authorized, unauthorized = (
        0.0 if webhook.get(flag) is False else _nanos(webhook.get(key) or default) / _SECOND
        for key, flag, default in (
            ("authorizedTTL", "cacheAuthorizedRequests", "5m"),
            ("unauthorizedTTL", "cacheUnauthorizedRequests", "30s"),
        )
    )
    settings = WebhookSettings(
        webhook["connectionInfo"].get("kubeConfigFile") or "",
        webhook["subjectAccessReviewVersion"],
        _nanos(webhook["timeout"]) / _SECOND,
        authorized,
        unauthorized,
        webhook["failurePolicy"] == "Deny",
        compile_conditions(_expressions(webhook), Path("matchConditions"))[0],
    )
    return ConfiguredAuthorizer(entry["type"], entry["name"], settings)


def _errors(entries: Sequence[Mapping[str, Any]]) -> list[FieldError]:
    root = Path("authorizers")
    if not entries:
        return [required(root, "at least one authorization mode must be defined")]
    errs: list[FieldError] = []
    types: set[str] = set()
    names: set[str] = set()
    for index, entry in enumerate(entries):
        path, kind = root.index(index), entry.get("type") or ""
        if not kind:
            errs.append(required(path.child("type"), ""))
        elif kind not in TYPES:
            errs.append(not_supported(path.child("type"), kind, TYPES))
        elif kind in types and kind != "Webhook":
            errs.append(duplicate(path.child("type"), kind))
        else:
            types.add(kind)
            errs += _name_errors(entry.get("name") or "", names, path.child("name"))
            errs += _webhook_entry_errors(kind, entry.get("webhook"), path)
    return errs


def _name_errors(name: str, names: set[str], path: Path) -> list[FieldError]:
    if not name:
        return [required(path, "")]
    if name in names:
        return [duplicate(path, name)]
    names.add(name)
    errs = check_dns1123_subdomain(name)
    return [invalid(path, name, f"authorizer name is invalid: {', '.join(errs)}")] if errs else []


def _webhook_entry_errors(kind: str, webhook: Mapping[str, Any] | None, path: Path) -> list[FieldError]:
    if kind != "Webhook":
        if webhook is None:
            return []
        return [invalid(path.child("webhook"), "non-null", "may only be specified when type=Webhook")]
    if webhook is None:
        return [required(path.child("webhook"), "required when type=Webhook")]
    errs = _time_errors(webhook, path)
    version, needed = "matchConditionSubjectAccessReviewVersion", bool(_expressions(webhook))
    for name, known, detail in (
        ("subjectAccessReviewVersion", ("v1", "v1beta1"), ""),
        (version, ("v1",), "required if match conditions are specified"),
        ("failurePolicy", ("NoOpinion", "Deny"), ""),
    ):
        value = webhook.get(name) or ""
        if value and value not in known:
            errs.append(not_supported(path.child(name), value, known))
        elif not value and (needed or name != version):
            errs.append(required(path.child(name), detail))
    errs += _connection_errors(webhook.get("connectionInfo") or {}, path.child("connectionInfo"))
    return errs + compile_conditions(_expressions(webhook), path.child("matchConditions"))[1]


def _expressions(webhook: Mapping[str, Any]) -> list[str]:
    return [str(each.get("expression") or "") for each in webhook.get("matchConditions") or ()]


def _time_errors(webhook: Mapping[str, Any], path: Path) -> list[FieldError]:
    errs: list[FieldError] = []
    times = (("timeout", "", 30 * _SECOND), ("authorizedTTL", "5m", 0), ("unauthorizedTTL", "30s", 0))
    for name, default, most in times:
        text = webhook.get(name) or default
        try:
            nanos = _nanos(text) if text else 0
        except TimeError as error:
            errs.append(invalid(path.child(name), text, str(error)))
            continue
        if not nanos and not default:
            errs.append(required(path.child(name), ""))
        elif nanos < 0 or (most and nanos > most):
            detail = "must be > 0s and <= 30s" if most else "must be > 0s"
            errs.append(invalid(path.child(name), format_duration(nanos), detail))
    return errs


def _connection_errors(connection: Mapping[str, Any], path: Path) -> list[FieldError]:
    kind, file = connection.get("type") or "", connection.get("kubeConfigFile")
    where = path.child("kubeConfigFile")
    if not kind:
        return [required(path.child("type"), "")]
    if kind == "InClusterConfig":
        return [invalid(where, file, "can only be set when type=KubeConfigFile")] if file is not None else []
    if kind != "KubeConfigFile":
        return [not_supported(path.child("type"), connection, ("InClusterConfig", "KubeConfigFile"))]
    if not file:
        return [required(where, "")]
    if not os.path.isabs(file):
        return [invalid(where, file, "must be an absolute path")]
    try:
        mode = os.stat(file).st_mode
    except OSError as error:
        return [invalid(where, file, f"error loading file: stat {file}: {(error.strerror or '').lower()}")]
    return [] if stat.S_ISREG(mode) else [invalid(where, file, "must be a regular file")]


def _nanos(text: Any) -> int:
    return parse_duration(str(text))
