"""What a policy fills in where a pod leaves it open."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.core.pod_spec.annotations import APP_ARMOR_PREFIX, SECCOMP_POD
from pilothouse.apis.legacy.pod_security_policy import APP_ARMOR_DEFAULT, SECCOMP_DEFAULT
from pilothouse.machinery.objects import Object

_RANGED: Final = "MustRunAs"


def fill_in(pod: Object, policy: Object) -> None:
    """Fill in the pod and all its containers, in place."""
    spec, rules, notes = pod["spec"], policy["spec"], policy["metadata"].get("annotations") or {}
    context: dict[str, Any] = dict(spec.get("securityContext") or {})
    groups = rules.get("supplementalGroups") or {}
    if context.get("supplementalGroups") is None and groups.get("rule") == _RANGED and groups.get("ranges"):
        context["supplementalGroups"] = [groups["ranges"][0].get("min", 0)]
    _first(context, "fsGroup", rules.get("fsGroup"))
    linux = rules.get("seLinux") or {}
    if context.get("seLinuxOptions") is None and linux.get("rule") == _RANGED and linux.get("seLinuxOptions"):
        context["seLinuxOptions"] = dict(linux["seLinuxOptions"])
    annotations = dict(pod["metadata"].get("annotations") or {})
    if notes.get(SECCOMP_DEFAULT) and not annotations.get(SECCOMP_POD) and not context.get("seccompProfile"):
        annotations[SECCOMP_POD] = notes[SECCOMP_DEFAULT]
        context["seccompProfile"] = profile_of(notes[SECCOMP_DEFAULT])
    if context or spec.get("securityContext") is not None:
        spec["securityContext"] = context
    default = (rules.get("runtimeClass") or {}).get("defaultRuntimeClassName")
    if default is not None and spec.get("runtimeClassName") is None:
        spec["runtimeClassName"] = default
    for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        _fill_container(container, context, rules)
        if notes.get(APP_ARMOR_DEFAULT):
            annotations.setdefault(f"{APP_ARMOR_PREFIX}{container.get('name', '')}", notes[APP_ARMOR_DEFAULT])
    if annotations:
        pod["metadata"]["annotations"] = annotations


def profile_of(name: str) -> Object:
    """A seccomp profile by the name that annotations call it."""
    if name.startswith("localhost/"):
        return {"type": "Localhost", "localhostProfile": name.removeprefix("localhost/")}
    return {"type": "Unconfined" if name == "unconfined" else "RuntimeDefault"}


def _first(context: dict[str, Any], name: str, rule: Object | None) -> None:
    """The first of the ranges that a value must be in."""
    rule = rule or {}
    if context.get(name) is None and rule.get("rule") == _RANGED and rule.get("ranges"):
        context[name] = rule["ranges"][0].get("min", 0)


def _fill_container(container: Object, around: Object, rules: Object) -> None:
    given = container.get("securityContext")
    context: dict[str, Any] = dict(given or {})
    if around.get("runAsUser") is None:
        _first(context, "runAsUser", rules.get("runAsUser"))
    if around.get("runAsGroup") is None:
        _first(context, "runAsGroup", rules.get("runAsGroup"))
    user = context.get("runAsUser", around.get("runAsUser"))
    non_root = context.get("runAsNonRoot", around.get("runAsNonRoot"))
    if (rules.get("runAsUser") or {}).get("rule") == "MustRunAsNonRoot" and user is None and non_root is None:
        context["runAsNonRoot"] = True
    capabilities = _capabilities(context.get("capabilities"), rules)
    if capabilities is not None:
        context["capabilities"] = capabilities
    if rules.get("readOnlyRootFilesystem") and context.get("readOnlyRootFilesystem") is None:
        context["readOnlyRootFilesystem"] = True
    if context.get("allowPrivilegeEscalation") is None:
        default = rules.get("defaultAllowPrivilegeEscalation")
        if default is None and rules.get("allowPrivilegeEscalation") is False:
            default = False
        if default is not None:
            context["allowPrivilegeEscalation"] = default
    if context or given is not None:
        container["securityContext"] = context


def _capabilities(given: Object | None, rules: Object) -> Object | None:
    added, dropped = (set((given or {}).get(name) or ()) for name in ("add", "drop"))
    wanted = added | (set(rules.get("defaultAddCapabilities") or ()) - dropped)
    unwanted = dropped | set(rules.get("requiredDropCapabilities") or ())
    if wanted == added and unwanted == dropped:
        return given
    made = {"add": sorted(wanted), "drop": sorted(unwanted)}
    return {name: names for name, names in made.items() if names}
