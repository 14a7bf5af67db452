"""Templates of claims. What they hold never changes."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.core.pod_spec.claims import validate_template_metadata
from pilothouse.apis.error_lists import ErrorList
from pilothouse.apis.metadata import IMMUTABLE
from pilothouse.apis.resource.admin_access import check_requests
from pilothouse.apis.resource.resource_claim.strategy import default_claim
from pilothouse.apis.resource.resource_claim.validation import validate_claim_spec
from pilothouse.apis.strategy import Context, Strategy
from pilothouse.apis.strategy_rules import DeletionRules, MetadataRules
from pilothouse.machinery.field_errors import FieldError, Path, invalid
from pilothouse.machinery.objects import Object

_SPEC: Final = Path("spec")


class ClaimTemplateStrategy(Strategy):
    """Templates of resource claims: the spec never changes."""

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    deletion_rules = DeletionRules(returns_deleted=True)
    columns = (NAME, AGE)

    def default(self, obj: Object) -> None:
        default_claim(obj["spec"]["spec"])

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return check_requests(obj["spec"]["spec"], ctx.namespace, self.labels_of) + self._errors(obj).listed()

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs = self._errors(obj)
        if ctx.raw_changed or obj["spec"] != old["spec"]:
            shown = internal_form("resource.v1.ResourceClaimTemplateSpec", obj["spec"])
            errs.errors.append(invalid(_SPEC, shown, IMMUTABLE))
        return errs.listed()

    def _errors(self, obj: Object) -> ErrorList:
        errs = ErrorList()
        validate_template_metadata(obj["spec"].get("metadata", {}), _SPEC.child("metadata"), errs.errors)
        validate_claim_spec(obj["spec"]["spec"], _SPEC.child("spec"), errs, self.gates)
        return errs
