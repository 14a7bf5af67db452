"""PodNodeSelector: pods run on the nodes that their namespace names, in annotations or in the configuration."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugin import Plugin
from pilothouse.endpoints.admission import CREATE, Attributes
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import Path, invalid
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.names import check_label_key, check_label_value

_ANNOTATIONS: Final = ("scheduler.alpha.kubernetes.io/node-selector",)
_DEFAULT: Final = "clusterDefaultNodeSelector"
_CONFLICT: Final = "pod node label selector conflicts with its namespace node label selector"
_BEYOND: Final = "pod node label selector labels conflict with its namespace whitelist"


class PodNodeSelector(Plugin):
    """See the module's docstring."""

    name = "PodNodeSelector"
    operations = frozenset({CREATE})
    resources = frozenset({GroupResource("", "pods")})

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        raw = configuration.get("podNodeSelectorPluginConfig") if isinstance(configuration, dict) else None
        given = raw.items() if isinstance(raw, dict) else ()
        # kube-apiserver reads what it can of this file, and says nothing of the rest.
        self._selectors: dict[str, str] = {str(name): text for name, text in given if isinstance(text, str)}
        self._namespaces = environment.objects("", "v1", "namespaces")

    async def admit(self, attributes: Attributes) -> None:
        """Add the namespace's selector."""
        spec = (attributes.object or {}).setdefault("spec", {})
        wanted = await self._wanted(attributes)
        given = spec.get("nodeSelector") or {}
        _refuse_conflict(attributes, wanted, given)
        if wanted or given:
            spec["nodeSelector"] = {**wanted, **given}
        await self.validate(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Refuse what is against the namespace's selector, or beyond what the configuration allows."""
        given = ((attributes.object or {}).get("spec") or {}).get("nodeSelector") or {}
        _refuse_conflict(attributes, await self._wanted(attributes), given)
        allowed = parse_labels(self._selectors.get(attributes.namespace, ""))
        if allowed and any(allowed.get(key) != value for key, value in given.items()):
            raise _refusal(attributes, _BEYOND)

    async def _wanted(self, attributes: Attributes) -> dict[str, str]:
        name = attributes.namespace
        namespace = await self._namespaces.find("", name)
        if namespace is None:
            raise errors.internal_error(f"namespace {name} does not exist")
        annotations = namespace["metadata"].get("annotations") or {}
        found = [parse_labels(annotations[key]) for key in _ANNOTATIONS if key in annotations]
        if not found:
            return parse_labels(self._selectors.get(_DEFAULT, ""))
        return {key: value for labels in found for key, value in labels.items()}


def _refuse_conflict(attributes: Attributes, wanted: dict[str, str], given: dict[str, str]) -> None:
    if any(given.get(key, value) != value for key, value in wanted.items()):
        raise _refusal(attributes, _CONFLICT)


def _refusal(attributes: Attributes, why: str) -> errors.StatusError:
    name = ((attributes.object or {}).get("metadata") or {}).get("name", "")
    return errors.forbidden(attributes.resource.group_resource, name, why)


def _require(path: Path | None, value: str, errs: list[str]) -> None:
    if errs:
        raise errors.generic(str(invalid(path, value, "; ".join(errs))))


def parse_labels(text: str) -> dict[str, str]:
    """Read ``a=b,c=d``; anything else is a 500, as in kube-apiserver."""
    labels = {}
    for part in text.split(",") if text else ():
        steps = part.split("=")
        if len(steps) != 2:
            raise errors.generic(f"invalid selector: [{' '.join(steps)}]")
        key, value = steps[0].strip(), steps[1].strip()
        _require(None, key, check_label_key(key))
        _require(Path().key(key), value, check_label_value(value))
        labels[key] = value
    return labels
