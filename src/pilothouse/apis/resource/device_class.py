"""Classes of devices: selectors and configuration that claims refer to by name."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.error_lists import ErrorList, declare_name
from pilothouse.apis.object_names import name_is_declared
from pilothouse.apis.resource.formats import check_declared_extended_name, declare_limit
from pilothouse.apis.resource.resource_claim.validation import validate_configuration, validate_selectors
from pilothouse.apis.strategy import Context, Strategy
from pilothouse.apis.strategy_rules import DeletionRules, GenerationRules
from pilothouse.machinery.field_errors import FieldError, Path
from pilothouse.machinery.objects import Object

_SPEC: Final = Path("spec")
_CONFIG_LIMIT: Final = 32


class DeviceClassStrategy(Strategy):
    """Device classes."""

    validate_name = staticmethod(name_is_declared)
    deletion_rules = DeletionRules(returns_deleted=True)
    generation_rules = GenerationRules(counted=True)
    columns = (NAME, AGE)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        errs = ErrorList()
        declare_name(obj["metadata"], errs.declared)
        return _class_errors(obj["spec"], {}, errs)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return _class_errors(obj["spec"], old["spec"], ErrorList())


def _class_errors(spec: Object, old: Object, errs: ErrorList) -> list[FieldError]:
    if spec.get("selectors") != old.get("selectors"):
        validate_selectors(spec.get("selectors") or [], _SPEC.child("selectors"), errs)
    config, where = spec.get("config") or [], _SPEC.child("config")
    if declare_limit(config, _CONFIG_LIMIT, where, errs):
        for position, one in enumerate(config):
            validate_configuration(one, where.index(position), errs, stored=config == old.get("config"))
    name = spec.get("extendedResourceName")
    if name is not None and name != old.get("extendedResourceName"):
        check_declared_extended_name(name, _SPEC.child("extendedResourceName"), errs.declared)
    return errs.listed()
