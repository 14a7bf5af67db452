"""CSI drivers."""

from __future__ import annotations

from typing import Any

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.metadata import IMMUTABLE
from pilothouse.apis.storage.columns import doc, of_spec
from pilothouse.apis.strategy import Column, Context, Strategy
from pilothouse.apis.strategy_rules import DeletionRules, UpdateRules
from pilothouse.apis.validation import one_of
from pilothouse.machinery.field_errors import FieldError, Path, duplicate, invalid, required
from pilothouse.machinery.objects import Object

_SPEC = Path("spec")
_TOKEN_LEAST = 600
_TOKEN_MOST = 1 << 32
_ALWAYS_SET = (
    ("attachRequired", "attachedRequired"),
    ("podInfoOnMount", "podInfoOnMount"),
    ("storageCapacity", "storageCapacity"),
)
_TOKENS_IN_SECRETS = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent "
    "possible logging of tokens in volume attributes"
)
_DRIVER_DEFAULTS = (
    ("attachRequired", True),
    ("podInfoOnMount", False),
    ("storageCapacity", False),
    ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
    ("requiresRepublish", False),
    ("seLinuxMount", False),
)
_LIMITS_SCALE = "VolumeLimitScaling"


def validate_driver(obj: Object, old: Object | None = None, *, limits_scale: bool = True) -> list[FieldError]:
    """Errors of a CSI driver."""
    spec = obj["spec"]
    errs = [required(_SPEC.child(shown)) for name, shown in _ALWAYS_SET if spec.get(name) is None]
    if spec.get("fsGroupPolicy") is not None:
        one_of(spec["fsGroupPolicy"], ("File", "None", "ReadWriteOnceWithFSType"), _SPEC, "fsGroupPolicy", errs)
    requests = spec.get("tokenRequests") or ()
    _validate_token_requests(requests, _SPEC.child("tokenRequests"), errs)
    for mode in spec.get("volumeLifecycleModes") or ():
        one_of(mode, ("Persistent", "Ephemeral"), _SPEC, "volumeLifecycleModes", errs)
    if spec.get("seLinuxMount") is None:
        errs.append(required(_SPEC.child("seLinuxMount")))
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < 10:
        why = "must be greater than or equal to 10 seconds"
        errs.append(invalid(_SPEC.child("nodeAllocatableUpdatePeriodSeconds"), period, why))
    secret = spec.get("serviceAccountTokenInSecrets")
    if secret is not None and not requests:
        why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        errs.append(invalid(_SPEC.child("serviceAccountTokenInSecrets"), secret, why))
    if limits_scale and spec.get("preventPodSchedulingIfMissing") is None:
        errs.append(required(_SPEC.child("preventPodSchedulingIfMissing")))
    if old is not None:
        _keep_driver(spec, old["spec"], errs)
    return errs


def _keep_driver(spec: Object, old: Object, errs: list[FieldError]) -> None:
    for name, shown in (("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")):
        if spec.get(name) != old.get(name):
            errs.append(invalid(_SPEC.child(shown), spec.get(name), IMMUTABLE))


def _validate_token_requests(requests: Any, path: Path, errs: list[FieldError]) -> None:
    seen: set[str] = set()
    for position, request in enumerate(requests):
        audience, seconds = request.get("audience", ""), request.get("expirationSeconds")
        if audience in seen:
            errs.append(duplicate(path.index(position).child("audience"), audience))
            continue
        seen.add(audience)
        if seconds is None:
            continue
        where = path.index(position).child("expirationSeconds")
        if seconds < _TOKEN_LEAST:
            errs.append(invalid(where, seconds, "may not specify a duration less than 10 minutes"))
        if seconds > _TOKEN_MOST:
            errs.append(invalid(where, seconds, "may not specify a duration larger than 2^32 seconds"))


def _audiences(obj: Object) -> str:
    requests = obj["spec"].get("tokenRequests")
    return "<unset>" if requests is None else ",".join(request.get("audience", "") for request in requests)


def _modes(obj: Object) -> str:
    return ",".join(obj["spec"].get("volumeLifecycleModes") or ()) or "<none>"


def _driver_flag(title: str, name: str, otherwise: bool) -> Column:
    return Column(title, "boolean", of_spec(name, otherwise), description=doc("CSIDriverSpec", name))


CSI_DRIVER_COLUMNS = (
    NAME,
    _driver_flag("AttachRequired", "attachRequired", True),
    _driver_flag("PodInfoOnMount", "podInfoOnMount", False),
    _driver_flag("StorageCapacity", "storageCapacity", False),
    Column("TokenRequests", "string", _audiences, description=doc("CSIDriverSpec", "tokenRequests")),
    _driver_flag("RequiresRepublish", "requiresRepublish", False),
    Column("Modes", "string", _modes, description=doc("CSIDriverSpec", "volumeLifecycleModes")),
    AGE,
)


class CSIDriverStrategy(Strategy):
    """CSI drivers. The generation counts changes of the spec but starts unset."""

    deletion_rules = DeletionRules(returns_deleted=True)
    update_rules = UpdateRules(allow_unconditional=False)
    columns = CSI_DRIVER_COLUMNS

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        for name, value in _DRIVER_DEFAULTS:
            if spec.get(name) is None:
                spec[name] = value
        if spec.get("preventPodSchedulingIfMissing") is None and _LIMITS_SCALE in self.gates:
            spec["preventPodSchedulingIfMissing"] = False
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        if obj["spec"] != old["spec"]:
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_driver(obj, limits_scale=_LIMITS_SCALE in self.gates)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_driver(obj, old, limits_scale=_LIMITS_SCALE in self.gates)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        spec = obj["spec"]
        unsafe = spec.get("tokenRequests") and spec.get("serviceAccountTokenInSecrets") is None
        return [_TOKENS_IN_SECRETS] if unsafe else []

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        changed = obj["spec"].get("tokenRequests") != old["spec"].get("tokenRequests")
        return self.warnings_on_create(ctx, obj) if changed else []
