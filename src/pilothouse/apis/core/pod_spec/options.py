"""What an update must go on accepting because the stored object already has it.

Rules of pod validation got stricter over time. An object from before such a change must stay updatable, so each looser
rule is an option that is on only if the old spec breaks the strict one, or if a feature gate asks for it. Without an
old spec the options are those of new objects, made once for each set of gates.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import lru_cache
from operator import attrgetter

from pilothouse.apis.core.pod_spec.affinity import has_invalid_node_value, has_invalid_term_value
from pilothouse.apis.core.pod_spec.annotations import has_valid_deletion_cost
from pilothouse.apis.core.pod_spec.paths import is_local_path
from pilothouse.apis.core.pod_spec.resources import has_indivisible_huge_pages
from pilothouse.apis.core.pod_spec.sysctls import is_host_sysctl
from pilothouse.apis.core.pod_spec.topology_spread import (
    breaks_former_match_keys,
    has_invalid_match_keys,
    has_invalid_spread_selector,
)
from pilothouse.apis.core.pod_spec.traversal import containers_of
from pilothouse.apis.gates import ALLOW_PRIVILEGED, default_gates
from pilothouse.machinery.objects import Object


@dataclass(slots=True)
class PodValidationOptions:
    """Looser rules for objects that already break the stricter ones."""

    is_pod: bool = False
    """Whether the spec is a pod's own and not the template of a workload."""
    gates: frozenset[str] = field(default_factory=default_gates)
    allow_privileged: bool = False
    """Whether the cluster takes privileged containers."""
    allow_invalid_deletion_cost: bool = False
    allow_invalid_label_value_in_selector: bool = False
    allow_invalid_label_value_in_node_affinity: bool = False
    allow_indivisible_huge_pages: bool = False
    allow_invalid_spread_selector: bool = False
    former_match_label_keys: bool = False
    """Whether keys are judged as before the server added them to the selector."""
    allow_non_local_token_path: bool = False
    allow_host_sysctls: bool = False
    allow_user_namespaces_with_devices: bool = False
    allow_user_namespaces_with_host_network: bool = False
    allow_comparing_tolerations: bool = False
    allow_empty_image_volume_reference: bool = False
    allow_restart_container_for_init: bool = False
    allow_sys_admin_without_escalation: bool = False
    allow_env_files: bool = True
    allow_restart_rules: bool = True
    allow_restart_of_all: bool = True
    only_recursive_relabelling: bool = False
    strict_addresses: bool = True
    old_responders: list[Object] = field(default_factory=list)


_values_of = attrgetter(*(each.name for each in fields(PodValidationOptions)))


@lru_cache(maxsize=16)
def new_options(gates: frozenset[str], *, is_pod: bool = False) -> PodValidationOptions:
    """The options to judge a new spec by."""
    return PodValidationOptions(
        is_pod=is_pod,
        gates=gates,
        allow_privileged=ALLOW_PRIVILEGED in gates,
        allow_invalid_deletion_cost="PodDeletionCost" not in gates,
        former_match_label_keys=not _merges_match_keys(gates),
        allow_user_namespaces_with_host_network="UserNamespacesHostNetworkSupport" in gates,
        allow_comparing_tolerations="TaintTolerationComparisonOperators" in gates,
        allow_env_files="EnvFiles" in gates,
        allow_restart_rules="ContainerRestartRules" in gates,
        allow_restart_of_all="RestartAllContainersOnContainerExits" in gates,
        only_recursive_relabelling="SELinuxMount" not in gates,
        strict_addresses="StrictIPCIDRValidation" in gates,
    )


def _merges_match_keys(gates: frozenset[str]) -> bool:
    return gates >= {"MatchLabelKeysInPodTopologySpread", "MatchLabelKeysInPodTopologySpreadSelectorMerge"}


def options_for(
    gates: frozenset[str], old_spec: Object, old_metadata: Object, *, is_pod: bool = False
) -> PodValidationOptions:
    """The options to judge a spec by that replaces this one."""
    options = PodValidationOptions(*_values_of(new_options(gates, is_pod=is_pod)))
    if not options.allow_invalid_deletion_cost:
        options.allow_invalid_deletion_cost = not has_valid_deletion_cost(old_metadata.get("annotations") or {})
    containers = list(containers_of(old_spec))
    own_users = old_spec.get("hostUsers") is False
    constraints = old_spec.get("topologySpreadConstraints") or ()
    options.allow_indivisible_huge_pages = has_indivisible_huge_pages(old_spec)
    affinity = old_spec.get("affinity")
    if affinity:
        options.allow_invalid_label_value_in_selector = has_invalid_term_value(affinity)
        options.allow_invalid_label_value_in_node_affinity = has_invalid_node_value(affinity)
    options.allow_invalid_spread_selector = any(map(has_invalid_spread_selector, constraints))
    if not options.former_match_label_keys:
        options.former_match_label_keys = any(map(has_invalid_match_keys, constraints))
    elif "MatchLabelKeysInPodTopologySpread" in gates:
        options.former_match_label_keys = not any(map(breaks_former_match_keys, constraints))
    options.allow_host_sysctls = _has_host_sysctls(old_spec)
    options.allow_user_namespaces_with_devices = own_users and any(c.get("volumeDevices") for c in containers)
    options.allow_user_namespaces_with_host_network |= own_users and bool(old_spec.get("hostNetwork"))
    options.allow_comparing_tolerations |= _compares_tolerations(old_spec)
    for volume in old_spec.get("volumes") or ():
        if "image" in volume and not volume["image"].get("reference"):
            options.allow_empty_image_volume_reference = True
        if "projected" in volume and _has_foreign_token_path(volume["projected"]):
            options.allow_non_local_token_path = True
    options.allow_restart_container_for_init = any(map(_restarts_init, old_spec.get("initContainers") or ()))
    options.allow_sys_admin_without_escalation = any(map(_has_sys_admin, containers))
    options.allow_env_files |= any(map(_has_env_file, containers))
    options.allow_restart_rules |= _has_restart_rules(old_spec)
    options.allow_restart_of_all |= any(map(_restarts_all, containers))
    if options.only_recursive_relabelling:
        options.only_recursive_relabelling = "seLinuxChangePolicy" not in (old_spec.get("securityContext") or {})
    options.old_responders = old_spec.get("evictionResponders") or []
    return options


def options_for_status(gates: frozenset[str], old_spec: Object, old_metadata: Object) -> PodValidationOptions:
    """The options to judge a pod's status and annotations by, which know nothing of the rest of its spec."""
    options = PodValidationOptions(*_values_of(new_options(gates, is_pod=True)))
    if not options.allow_invalid_deletion_cost:
        options.allow_invalid_deletion_cost = not has_valid_deletion_cost(old_metadata.get("annotations") or {})
    options.allow_comparing_tolerations |= _compares_tolerations(old_spec)
    if not options.allow_restart_of_all:
        options.allow_restart_of_all = any(map(_restarts_all, containers_of(old_spec)))
    return options


def options_for_template(gates: frozenset[str], old: Object | None = None) -> PodValidationOptions:
    """The options for the template of a workload that replaces this one; None for a new workload."""
    return options_for(gates, old["spec"], old["metadata"]) if old is not None else new_options(gates)


def _compares_tolerations(spec: Object) -> bool:
    return any(toleration.get("operator") in ("Lt", "Gt") for toleration in spec.get("tolerations") or ())


def _has_env_file(container: Object) -> bool:
    return any("fileKeyRef" in (variable.get("valueFrom") or ()) for variable in container.get("env") or ())


def _has_restart_rules(spec: Object) -> bool:
    if any("restartPolicy" in container for container in spec.get("containers") or ()):
        return True
    return any(
        container.get("restartPolicy", "Always") != "Always" or container.get("restartPolicyRules")
        for container in spec.get("initContainers") or ()
    )


def _restarts_all(container: Object) -> bool:
    rules = container.get("restartPolicyRules") or ()
    return any(rule.get("action") == "RestartAllContainers" for rule in rules)


def _has_host_sysctls(spec: Object) -> bool:
    context = spec.get("securityContext") or {}
    return any(is_host_sysctl(sysctl.get("name", ""), spec) for sysctl in context.get("sysctls") or ())


def _has_foreign_token_path(projected: Object) -> bool:
    return any(
        not is_local_path(source["serviceAccountToken"].get("path", ""))
        for source in projected.get("sources") or ()
        if "serviceAccountToken" in source
    )


def _restarts_init(container: Object) -> bool:
    if container.get("restartPolicy") == "Always":
        return False
    return any(policy.get("restartPolicy") == "RestartContainer" for policy in container.get("resizePolicy") or ())


def _has_sys_admin(container: Object) -> bool:
    context = container.get("securityContext") or {}
    if context.get("allowPrivilegeEscalation"):
        return False
    return "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ())
