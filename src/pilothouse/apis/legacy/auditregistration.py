"""Audit sinks (auditregistration.k8s.io/v1alpha1), which no later release has: where audit events go while the
server runs.
"""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.admissionregistration.endpoints import validate_service, validate_url
from pilothouse.apis.legacy.older import Older
from pilothouse.apis.strategy import Context, Strategy
from pilothouse.apis.strategy_rules import GenerationRules, UpdateRules
from pilothouse.machinery.field_errors import FieldError, Path, invalid, not_supported, required
from pilothouse.machinery.objects import Object

_SPEC: Final = Path("spec")
_LEVELS: Final = ("Metadata", "None", "Request", "RequestResponse")
_STAGES: Final = ("Panic", "RequestReceived", "ResponseComplete", "ResponseStarted")
_THROTTLE: Final = {"qps": 10, "burst": 15}


def validate_sink(spec: Object) -> list[FieldError]:
    """Errors of a sink."""
    return _validate_policy(spec["policy"], _SPEC.child("policy")) + _validate_webhook(
        spec["webhook"], _SPEC.child("webhook")
    )


def _validate_policy(policy: Object, path: Path) -> list[FieldError]:
    stages, level = policy.get("stages") or [], policy.get("level", "")
    if level != "None" and not stages:
        return [required(path.child("stages"), "")]
    why = f"allowed stages are {','.join(_STAGES)}"
    where = path.child("stages")
    errs = [invalid(where.index(at), stage, why) for at, stage in enumerate(stages) if stage not in _STAGES]
    if not level:
        errs.append(required(path.child("level"), ""))
    elif level not in _LEVELS:
        errs.append(not_supported(path.child("level"), level, _LEVELS))
    return errs


def _validate_webhook(webhook: Object, path: Path) -> list[FieldError]:
    throttle: dict[str, Any] = webhook.get("throttle") or {}
    wrong = [name for name in ("qps", "burst") if throttle.get(name) is not None and throttle[name] <= 0]
    there = path.child("throttle")
    errs = [invalid(there.child(name), throttle[name], f"{name} must be a positive number") for name in wrong]
    client, where = webhook["clientConfig"], path.child("clientConfig")
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        errs.append(required(where, "exactly one of url or service is required"))
    elif url is not None:
        validate_url(where.child("url"), url, errs, https=False)
    else:
        validate_service(where.child("service"), service, errs)
    return errs


class AuditSinkStrategy(Strategy):
    """Audit sinks."""

    update_rules = UpdateRules(allow_unconditional=False)
    generation_rules = GenerationRules(counted=True)

    def default(self, obj: Object) -> None:
        webhook = obj["spec"]["webhook"]
        webhook["throttle"] = {**_THROTTLE, **(webhook.get("throttle") or {})}
        service = webhook["clientConfig"].get("service")
        if service is not None:
            service.setdefault("port", 443)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_sink(obj["spec"])

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_sink(obj["spec"])


OLDER: dict[tuple[str, str], Older] = {("v1alpha1", "auditsinks"): Older(strategy=AuditSinkStrategy)}
