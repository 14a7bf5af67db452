"""Pod presets (settings.k8s.io/v1alpha1), which no later release has. What one injects never changes."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.core.pod_spec.defaults import default_container, default_volume
from pilothouse.apis.core.pod_spec.environment import validate_env, validate_env_from
from pilothouse.apis.core.pod_spec.mounts import validate_mounts
from pilothouse.apis.core.pod_spec.options import PodValidationOptions
from pilothouse.apis.core.pod_spec.volumes import validate_volumes
from pilothouse.apis.legacy.older import Older
from pilothouse.apis.selectors import validate_label_selector
from pilothouse.apis.strategy import Context, Strategy, keep
from pilothouse.machinery.field_errors import FieldError, Path, required
from pilothouse.machinery.objects import Object

_SPEC: Final = Path("spec")
_CONTENT: Final = ("volumes", "env", "envFrom", "volumeMounts")


def validate_preset(spec: Object) -> list[FieldError]:
    """Errors of what a preset injects."""
    errs: list[FieldError] = []
    validate_label_selector(spec.get("selector"), _SPEC.child("selector"), errs)
    if all(spec.get(name) is None for name in _CONTENT):
        errs.append(required(_SPEC.child(*_CONTENT), "must specify at least one"))
    volumes = validate_volumes(spec.get("volumes") or [], None, _SPEC.child("volumes"), errs, PodValidationOptions())
    validate_env(spec.get("env") or [], _SPEC.child("env"), errs, with_files=False)
    validate_env_from(spec.get("envFrom") or [], _SPEC.child("envFrom"), errs)
    validate_mounts({"volumeMounts": spec.get("volumeMounts") or []}, volumes, _SPEC, errs)
    return errs


class PodPresetStrategy(Strategy):
    """Pod presets. An update of the spec is accepted and forgotten."""

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        for volume in spec.get("volumes") or ():
            default_volume(volume)
        default_container({"env": spec.get("env") or [], "resources": {}})

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        obj["metadata"]["generation"] = 1

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        if obj["spec"] != old["spec"]:
            keep(obj, old, "spec")
            keep(obj["metadata"], old["metadata"], "managedFields")

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_preset(obj["spec"])

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_preset(obj["spec"])


OLDER: dict[tuple[str, str], Older] = {("v1alpha1", "podpresets"): Older(strategy=PodPresetStrategy)}
