"""ServiceAccounts: references to secrets are by name only."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.strategy import Context, Strategy
from pilothouse.apis.strategy_rules import DeletionRules, MetadataRules
from pilothouse.machinery.objects import Object

_MOUNTABLE: Final = "kubernetes.io/enforce-mountable-secrets"
_WARNING: Final = (
    f"metadata.annotations[{_MOUNTABLE}]: deprecated in v1.32+; "
    "prefer separate namespaces to isolate access to mounted secrets"
)


class ServiceAccountStrategy(Strategy):
    """Secrets may only be of the account's own namespace, so all but their names is dropped."""

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    columns = (NAME, AGE)
    deletion_rules = DeletionRules(returns_deleted=True)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        _keep_names_only(obj)

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        _keep_names_only(obj)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return [_WARNING] if _MOUNTABLE in (obj["metadata"].get("annotations") or ()) else []

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        if _MOUNTABLE in (old["metadata"].get("annotations") or ()):
            return []
        return self.warnings_on_create(ctx, obj)


def _keep_names_only(obj: Object) -> None:
    if obj.get("secrets"):
        obj["secrets"] = [{"name": ref["name"]} if ref.get("name") else {} for ref in obj["secrets"]]
