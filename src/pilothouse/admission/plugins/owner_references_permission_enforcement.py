"""OwnerReferencesPermissionEnforcement: owners are set by who may delete, and block deletion by who may finalize.

Otherwise somebody could have objects collected that he must not delete, or keep others from deleting theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.refusals import forbidden
from pilothouse.apis.resources import table
from pilothouse.authz.attributes import Attributes as Question
from pilothouse.authz.authorizer import AuthorizationFailed, Decision
from pilothouse.endpoints.admission import CREATE, UPDATE, Attributes
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupResource, GroupVersion, parse_group_version

_PODS: Final = GroupResource("", "pods")


class OwnerReferencesPermissionEnforcement(Plugin):
    """See the module's docstring."""

    name = "OwnerReferencesPermissionEnforcement"

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        self._definitions = environment.objects("apiextensions.k8s.io", "v1", "customresourcedefinitions")

    def concerns(self, operation: str, resource: GroupResource, subresource: str) -> bool:
        """Everything but the status of pods, which cannot change owners."""
        return operation in (CREATE, UPDATE) and (resource, subresource) != (_PODS, "status")

    async def validate(self, attributes: Attributes) -> None:
        """Ask the authorizer about what the new references amount to."""
        new, old = _references(attributes.object), _references(attributes.old_object)
        if new == old:
            return
        user = attributes.user
        if attributes.operation != CREATE:
            resource = attributes.resource
            question = Question(
                user,
                "delete",
                namespace=attributes.namespace,
                group=resource.group,
                version=resource.version,
                resource=resource.resource,
                subresource=attributes.subresource,
                name=attributes.name,
            )
            why = await self._ask(question)
            if why is not None:
                raise forbidden(attributes, f"cannot set an ownerRef on a resource you can't delete: {why}")
        blocking = _newly_blocking(new, old)
        if not blocking:
            return
        anything = Question(user, "update", group="*", version="*", resource="*", subresource="finalizers", name="*")
        if await self._ask(anything) is None:
            return
        for reference in blocking:
            await self._check_blocking(attributes, reference)

    async def _check_blocking(self, attributes: Attributes, reference: dict[str, Any]) -> None:
        version, kind = reference.get("apiVersion", ""), reference.get("kind", "")
        await self._definitions.ready()
        try:
            found = list(self._resources(parse_group_version(version), kind))
            err = "" if found else f"no matches for kind {quote(kind)} in version {quote(version)}"
        except ValueError as error:
            found, err = [], str(error)
        if err:
            why = (
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion "
                f"{version} Kind {kind}: {err}"
            )
            raise forbidden(attributes, why)
        for group, name, namespaced in found:
            question = Question(
                attributes.user,
                "update",
                namespace=attributes.namespace if namespaced else "",
                group=group.group,
                version=group.version,
                resource=name,
                subresource="finalizers",
                name=reference.get("name", ""),
            )
            reason = await self._ask(question)
            if reason is not None:
                why = (
                    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set "
                    f"finalizers on: {reason}"
                )
                raise forbidden(attributes, why)

    def _resources(self, gv: GroupVersion, kind: str) -> Iterator[tuple[GroupVersion, str, bool]]:
        """Resources of a kind, built-in or custom."""
        version = table().get(gv)
        for row in version.resources if version is not None else ():
            if row.kind == kind:
                yield gv, row.name, row.namespaced
        for definition in self._definitions.list():
            spec = definition.get("spec") or {}
            names = spec.get("names") or {}
            versions = {each.get("name") for each in spec.get("versions") or () if each.get("served")}
            if spec.get("group") == gv.group and names.get("kind") == kind and gv.version in versions:
                yield gv, names.get("plural", ""), spec.get("scope") == "Namespaced"

    async def _ask(self, question: Question) -> str | None:
        """None for yes, else reason and failure as the refusal shows them."""
        if self.environment.authorizer is None:
            return ", <nil>"
        try:
            decision, reason = await self.environment.authorizer.authorize(question)
        except AuthorizationFailed as failure:
            return f", {failure}"
        return None if decision is Decision.ALLOW else f"{reason}, <nil>"


def _references(obj: dict[str, Any] | None) -> list[dict[str, Any]]:
    return ((obj or {}).get("metadata") or {}).get("ownerReferences") or []


def _newly_blocking(new: list[dict[str, Any]], old: list[dict[str, Any]]) -> list[dict[str, Any]]:
    before = {each.get("uid"): each.get("blockOwnerDeletion") for each in old}
    return [each for each in new if each.get("blockOwnerDeletion") and not before.get(each.get("uid"))]
