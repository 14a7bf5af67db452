"""What webhooks, policies and bindings share: names that are reserved for what files register."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.strategy import Context, Strategy
from pilothouse.apis.strategy_rules import GenerationRules, MetadataRules, UpdateRules
from pilothouse.machinery.field_errors import FieldError, Path, invalid
from pilothouse.machinery.objects import Object

_MANIFESTS: Final = "ManifestBasedAdmissionControlConfig"
_STATIC: Final = ".static.k8s.io"
_RESERVED: Final = (
    f'names ending with "{_STATIC}" are reserved for static manifest-based configurations and cannot be managed '
    "via the API"
)


class RegistrationStrategy(Strategy):
    """What all kinds of the group share: names that files own are refused, updates carry a version."""

    metadata_rules = MetadataRules(standard_finalizers=False, judges_prefix_on_update=True)

    generation_rules = GenerationRules(counted=True)
    update_rules = UpdateRules(allow_unconditional=False)

    def errors(self, obj: Object, old: Object | None) -> list[FieldError]:
        """What is wrong with the spec."""
        return []

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        errs = self.errors(obj, None)
        name = obj["metadata"].get("name", "")
        if name.endswith(_STATIC) and _MANIFESTS in self.gates:
            errs.append(invalid(Path("metadata", "name"), name, _RESERVED))
        return errs

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return self.errors(obj, old)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return [] if _MANIFESTS in self.gates else warn_about_name(obj)

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        return warn_about_name(obj)


def warn_about_name(obj: Object) -> list[str]:
    """A name that files will own one day."""
    return [f"metadata.name: {_RESERVED}"] if obj["metadata"].get("name", "").endswith(_STATIC) else []
