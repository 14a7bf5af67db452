"""PodSecurity: pods must meet the Pod Security Standard that their namespace's labels name.

Pods are refused, warned about or noted for audit; what makes pods (deployments, jobs …) is only warned about and noted,
so that its owner learns early. Namespaces whose labels change hear how their present pods would fare.
"""

from __future__ import annotations

from typing import Any, Final

from pilothouse.admission.environment import Environment
from pilothouse.admission.objects import Objects
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.pod_security.configuration import read_configuration
from pilothouse.admission.pod_security.evaluation import NEWEST, Evaluation, evaluate
from pilothouse.admission.pod_security.metrics import AUDIT, ENFORCE, WARN
from pilothouse.admission.pod_security.namespaces import check_labels, describe_pods
from pilothouse.admission.pod_security.policies import (
    LATEST,
    PREFIX,
    PRIVILEGED,
    LevelVersion,
    Policy,
    read_policy,
)
from pilothouse.endpoints.admission import CREATE, UPDATE, Attributes
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import FieldError, aggregate
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.workers import LONG, aside
from pilothouse.storage.cacher import Entry

_PODS: Final = GroupResource("", "pods")
_NAMESPACES: Final = GroupResource("", "namespaces")
_TEMPLATES: Final = {
    GroupResource("", "replicationcontrollers"): ("spec", "template"),
    GroupResource("", "podtemplates"): ("template",),
    GroupResource("apps", "replicasets"): ("spec", "template"),
    GroupResource("apps", "deployments"): ("spec", "template"),
    GroupResource("apps", "statefulsets"): ("spec", "template"),
    GroupResource("apps", "daemonsets"): ("spec", "template"),
    GroupResource("batch", "jobs"): ("spec", "template"),
    GroupResource("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
}
_IGNORED: Final = frozenset({"exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"})
_POLICY: Final = "pod-security"
_PRIVILEGED: Final = str(LevelVersion(PRIVILEGED, LATEST))

ParsedPolicy = tuple[Policy, list[FieldError]]


class PodSecurity(Plugin):
    """See the module's docstring."""

    name = "PodSecurity"

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        self._configuration = read_configuration(configuration)
        self._namespaces = environment.objects("", "v1", "namespaces")
        self._pods = environment.late_objects("", "v1", "pods")
        self._metrics = environment.metrics.pod_security

    def concerns(self, operation: str, resource: GroupResource, subresource: str) -> bool:
        """Namespaces, pods through whatever may change them, and what makes pods."""
        if operation not in (CREATE, UPDATE):
            return False
        if resource == _PODS:
            return subresource not in _IGNORED
        return not subresource and (resource == _NAMESPACES or resource in _TEMPLATES)

    async def validate(self, attributes: Attributes) -> None:
        """Judge the object by the policy of its namespace."""
        if attributes.object is None:
            return
        resource = attributes.resource.resource
        if resource == _NAMESPACES.resource:
            await self._validate_namespace(attributes, attributes.object)
        elif self._is_exempt(attributes):
            return
        elif resource == _PODS.resource:
            await self._validate_pod(attributes, attributes.object)
        else:
            path = _TEMPLATES[attributes.resource.group_resource]
            await self._validate_template(attributes, attributes.object, path)

    def _is_exempt(self, attributes: Attributes) -> bool:
        if attributes.namespace in self._configuration.namespaces:
            attributes.annotations[PREFIX + "exempt"] = "namespace"
            self._metrics.exempt(attributes)
            return True
        if self._configuration.usernames and attributes.user.name in self._configuration.usernames:
            attributes.annotations[PREFIX + "exempt"] = "user"
            self._metrics.exempt(attributes)
            return True
        return False

    async def _policy(self, namespace: str) -> ParsedPolicy | None:
        namespaces = self._namespaces
        await namespaces.ready()
        entry = namespaces.entry("", namespace)
        if entry is None:
            await namespaces.refresh()
            entry = namespaces.entry("", namespace)
        return None if entry is None else Objects.derived(entry, _POLICY, self._read_policy)

    def _read_policy(self, entry: Entry) -> ParsedPolicy:
        return read_policy(entry.labels, self._configuration.defaults)

    async def _validate_pod(self, attributes: Attributes, pod: dict[str, Any]) -> None:
        parsed = await self._policy(attributes.namespace)
        if parsed is None:
            why = f"failed to lookup namespace {quote(attributes.namespace)}"
            missing = errors.not_found(_NAMESPACES, attributes.namespace)
            attributes.annotations[PREFIX + "error"] = f"Internal error occurred: {why}: {missing.message}"
            self._metrics.failed(attributes, fatal=True)
            raise errors.internal_error(why)
        policy, errs = parsed
        if not errs and policy.is_privileged:
            attributes.annotations[PREFIX + "enforce-policy"] = _PRIVILEGED
            self._metrics.passed_unrestricted(attributes)
            return
        if attributes.operation == UPDATE and not _is_significant(pod, attributes.old_object or {}):
            return
        await self._judge(attributes, parsed, pod["metadata"], pod.get("spec") or {}, enforce=True)

    async def _validate_template(self, attributes: Attributes, obj: dict[str, Any], path: tuple[str, ...]) -> None:
        parsed = await self._policy(attributes.namespace)
        if parsed is None:
            missing = errors.not_found(_NAMESPACES, attributes.namespace).message
            why = f"failed to lookup namespace {quote(attributes.namespace)}: {missing}"
            attributes.annotations[PREFIX + "error"] = why
            self._metrics.failed(attributes, fatal=True)
            return
        policy, errs = parsed
        if not errs and policy.warn.level == policy.audit.level == PRIVILEGED:
            return
        template: Any = obj
        for step in path:
            template = (template or {}).get(step)
        if template is not None:
            metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
            await self._judge(attributes, parsed, metadata, spec, enforce=False)

    async def _judge(
        self,
        attributes: Attributes,
        parsed: ParsedPolicy,
        metadata: dict[str, Any],
        spec: dict[str, Any],
        *,
        enforce: bool,
    ) -> None:
        policy, errs = parsed
        notes = attributes.annotations
        if spec.get("runtimeClassName") in self._configuration.runtime_classes:
            notes[PREFIX + "exempt"] = "runtimeClass"
            self._metrics.exempt(attributes)
            return
        if errs:
            notes[PREFIX + "error"] = f"Failed to parse policy: {aggregate(str(error) for error in errs)}"
            self._metrics.failed(attributes, fatal=False)
        known: dict[LevelVersion, Evaluation] = {}
        if attributes.weight >= LONG:
            for wanted in {policy.audit, policy.warn, policy.enforce if enforce else policy.audit}:
                known[wanted] = await aside(evaluate, wanted, metadata, spec, weight=attributes.weight)

        def judge(wanted: LevelVersion) -> Evaluation:
            if wanted not in known:
                known[wanted] = evaluate(wanted, metadata, spec)
            return known[wanted]

        count = self._metrics.evaluated
        refusal = None
        if enforce:
            notes[PREFIX + "enforce-policy"] = str(policy.enforce)
            found = judge(policy.enforce)
            count(attributes, policy.enforce, ENFORCE, NEWEST, allowed=not found.errs)
            if found.errs:
                why = f'violates PodSecurity "{policy.enforce}": {found.detail}'
                refusal = errors.forbidden(attributes.resource.group_resource, attributes.name, why)
        if judge(policy.audit).errs:
            would = f'would violate PodSecurity "{policy.audit}": {judge(policy.audit).detail}'
            notes[PREFIX + "audit-violations"] = would
            count(attributes, policy.audit, AUDIT, NEWEST, allowed=False)
        if refusal is not None:
            raise refusal
        if judge(policy.warn).errs:
            attributes.warnings.append(f'would violate PodSecurity "{policy.warn}": {judge(policy.warn).detail}')
            count(attributes, policy.warn, WARN, NEWEST, allowed=False)

    async def _validate_namespace(self, attributes: Attributes, namespace: dict[str, Any]) -> None:
        configuration = self._configuration
        changed = check_labels(attributes, namespace, configuration)
        if changed is None:
            return
        await self._pods.ready()
        name = namespace["metadata"].get("name", "")
        entries = await self._pods.read(self._pods.entries(name))
        pods = [self._pods.store.decode(entry) for entry in entries]
        attributes.warnings += await describe_pods(name, pods, changed, configuration, self.environment.monotonic)


def _is_significant(pod: dict[str, Any], old: dict[str, Any]) -> bool:
    """Whether an update touches anything the checks look at: images, and containers that came or went."""
    spec, before = pod.get("spec") or {}, old.get("spec") or {}
    for kind in ("containers", "initContainers"):
        images = [each.get("image") for each in spec.get(kind) or ()]
        if images != [each.get("image") for each in before.get(kind) or ()]:
            return True
    known = {each.get("name"): each.get("image") for each in before.get("ephemeralContainers") or ()}
    return any(
        each.get("name") not in known or known[each.get("name")] != each.get("image")
        for each in spec.get("ephemeralContainers") or ()
    )
