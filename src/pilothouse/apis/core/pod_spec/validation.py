"""Validation of a whole pod spec, in kube-apiserver's order.

A spec has many fields and a pod uses few, so most rules are reached only if their field is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.core.pod_spec.affinity import validate_affinity
from pilothouse.apis.core.pod_spec.annotations import MIRROR
from pilothouse.apis.core.pod_spec.containers import (
    Surroundings,
    validate_containers,
    validate_ephemeral_containers,
    validate_init_containers,
)
from pilothouse.apis.core.pod_spec.environment import validate_file_volumes
from pilothouse.apis.core.pod_spec.networking import (
    validate_dns,
    validate_dns_policy,
    validate_host_aliases,
    validate_host_network_ports,
    validate_hostname_override,
    validate_hostnames,
)
from pilothouse.apis.core.pod_spec.options import PodValidationOptions
from pilothouse.apis.core.pod_spec.resources import validate_overhead, validate_pod_resources
from pilothouse.apis.core.pod_spec.responders import validate_responders
from pilothouse.apis.core.pod_spec.security import validate_pod_security
from pilothouse.apis.core.pod_spec.tolerations import validate_tolerations
from pilothouse.apis.core.pod_spec.topology_spread import validate_spread_constraints
from pilothouse.apis.core.pod_spec.traversal import containers_at
from pilothouse.apis.core.pod_spec.volumes import validate_volumes
from pilothouse.apis.core.pod_spec.windows import validate_host_process, validate_system
from pilothouse.apis.metadata import validate_labels
from pilothouse.apis.validation import in_range, one_of_required, well_formed
from pilothouse.machinery.field_errors import WHOLE, FieldError, Path, duplicate, forbidden, invalid, required
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.names import check_dns1123_label, check_dns1123_subdomain, check_label_key
from pilothouse.machinery.objects import Object

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
_WITHOUT_HOST_USERS: Final = "when `hostUsers` is false"


def validate_pod_spec(
    spec: Object, metadata: Object | None, path: Path, errs: list[FieldError], options: PodValidationOptions
) -> None:
    """Errors of a spec; ``metadata`` is that of the pod itself, None in a template."""
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is None:
        errs.append(required(path.child("terminationGracePeriodSeconds"), ""))
    volumes = spec.get("volumes")
    sound = validate_volumes(volumes, metadata, path.child("volumes"), errs, options) if volumes else {}
    claims = spec.get("resourceClaims") or ()
    if claims:
        _validate_claims(claims, metadata, path.child("resourceClaims"), errs)
    around = Surroundings(
        options=options,
        volumes=sound,
        claim_names={claim["name"] for claim in claims if claim.get("name")},
        restart_policy=spec.get("restartPolicy", ""),
        grace=grace,
        system=spec["os"].get("name", "") if "os" in spec else None,
        host_users=spec.get("hostUsers") is not False,
    )
    regular = spec.get("containers") or []
    validate_containers(regular, around, path.child("containers"), errs)
    if "initContainers" in spec:
        validate_init_containers(spec["initContainers"], regular, around, path.child("initContainers"), errs)
    if "ephemeralContainers" in spec:
        validate_ephemeral_containers(spec, around, path.child("ephemeralContainers"), errs)
    if "resources" in spec and "PodLevelResources" in options.gates:
        validate_pod_resources(spec, path, errs, options)
    _validate_pod_wide(spec, path, errs, options)
    _validate_names(spec, path, errs)
    _validate_rest(spec, path, errs, options)


def _validate_pod_wide(spec: Object, path: Path, errs: list[FieldError], options: PodValidationOptions) -> None:
    """From the network to user namespaces."""
    if spec.get("hostNetwork"):
        validate_host_network_ports(spec, path, errs, is_pod=options.is_pod)
    one_of_required(spec.get("restartPolicy", ""), _RESTART_POLICIES, path, "restartPolicy", errs)
    validate_dns_policy(spec, path, errs)
    if spec.get("nodeSelector"):
        validate_labels(spec["nodeSelector"], path.child("nodeSelector"), errs)
    if spec.get("securityContext"):
        validate_pod_security(spec["securityContext"], spec, path.child("securityContext"), errs, options)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        why = "ShareProcessNamespace and HostPID cannot both be enabled"
        errs.append(invalid(path.child("shareProcessNamespace"), True, why))
    if spec.get("affinity"):
        validate_affinity(spec["affinity"], path.child("affinity"), errs, options)
    validate_dns(spec, path, errs, strict=options.strict_addresses)
    for position, gate in enumerate(spec.get("readinessGates") or ()):
        where = path.child("readinessGates").index(position)
        well_formed(gate.get("conditionType", ""), check_label_key, where, "conditionType", errs)
    if spec.get("schedulingGates"):
        _validate_scheduling_gates(spec["schedulingGates"], path.child("schedulingGates"), errs)
    if spec.get("topologySpreadConstraints"):
        constraints = spec["topologySpreadConstraints"]
        validate_spread_constraints(constraints, path.child("topologySpreadConstraints"), errs, options)
    validate_host_process(spec, path, errs, privileged_allowed=options.allow_privileged)
    if spec.get("hostUsers") is False:
        _validate_own_users(spec, path, errs, options)
    if "hostnameOverride" in spec:
        validate_hostname_override(spec, path, errs)


def _validate_names(spec: Object, path: Path, errs: list[FieldError]) -> None:
    account, deprecated = spec.get("serviceAccountName", ""), spec.get("serviceAccount", "")
    if account:
        well_formed(account, check_dns1123_subdomain, path, "serviceAccountName", errs)
    if deprecated != account:
        why = f"must be the same as serviceAccountName: {quote(account)}"
        errs.append(invalid(path.child("deprecatedServiceAccount"), deprecated, why))
    if spec.get("nodeName"):
        well_formed(spec["nodeName"], check_dns1123_subdomain, path, "nodeName", errs)
    if spec.get("activeDeadlineSeconds") is not None:
        in_range(spec["activeDeadlineSeconds"], 1, 2**31 - 1, path, "activeDeadlineSeconds", errs)
    validate_hostnames(spec, path, errs)


def _validate_rest(spec: Object, path: Path, errs: list[FieldError], options: PodValidationOptions) -> None:
    """From tolerations to the end."""
    if spec.get("tolerations"):
        validate_tolerations(spec["tolerations"], path.child("tolerations"), errs, options)
    if spec.get("hostAliases"):
        aliases = spec["hostAliases"]
        validate_host_aliases(aliases, path.child("hostAliases"), errs, strict=options.strict_addresses)
    if spec.get("priorityClassName"):
        well_formed(spec["priorityClassName"], check_dns1123_subdomain, path, "priorityClassName", errs)
    if spec.get("runtimeClassName") is not None:
        well_formed(spec["runtimeClassName"], check_dns1123_subdomain, path, "runtimeClassName", errs)
    if spec.get("preemptionPolicy") is not None:
        one_of_required(spec["preemptionPolicy"], _PREEMPTION_POLICIES, path, "preemptionPolicy", errs)
    if spec.get("overhead"):
        validate_overhead(spec["overhead"], path.child("overhead"), errs, options)
    if "os" in spec:
        validate_system(spec, path, errs)
    if "schedulingGroup" in spec:
        _validate_scheduling_group(spec, path.child("schedulingGroup"), errs)
    validate_file_volumes(spec, path, errs)
    if spec.get("evictionResponders"):
        validate_responders(spec["evictionResponders"], options.old_responders, path.child("evictionResponders"), errs)


def _validate_scheduling_gates(gates: list[Object], path: Path, errs: list[FieldError]) -> None:
    seen: set[str] = set()
    for position, gate in enumerate(gates):
        name = gate.get("name", "")
        errs += (invalid(path.index(position), name, message) for message in check_label_key(name))
        if name in seen:
            errs.append(duplicate(path.index(position), name))
        seen.add(name)


def _validate_own_users(spec: Object, path: Path, errs: list[FieldError], options: PodValidationOptions) -> None:
    """With users of its own a pod may not share the host's namespaces; the names are those in upstream's paths."""
    if spec.get("hostNetwork") and not options.allow_user_namespaces_with_host_network:
        errs.append(forbidden(path.child("hostNetwork"), _WITHOUT_HOST_USERS))
    for field, shown in (("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(field):
            errs.append(forbidden(path.child(shown), _WITHOUT_HOST_USERS))
    if not options.allow_user_namespaces_with_devices:
        for container, where in containers_at(spec, path):
            if container.get("volumeDevices"):
                errs.append(forbidden(where.child("volumeDevices"), _WITHOUT_HOST_USERS))


def _validate_scheduling_group(spec: Object, path: Path, errs: list[FieldError]) -> None:
    name = spec["schedulingGroup"].get("podGroupName")
    if name is None:
        errs.append(invalid(path.child("podGroupName"), None, "must specify one of: `podGroupName`"))
    else:
        well_formed(name, check_dns1123_subdomain, path, "podGroupName", errs)
    if spec.get("evictionResponders"):
        errs.append(forbidden(path, "may not be set when evictionResponders is set"))


def _validate_claims(claims: Any, metadata: Object | None, path: Path, errs: list[FieldError]) -> None:
    """The resource claims that containers may refer to; ``path`` is the list's."""
    if metadata and MIRROR in (metadata.get("annotations") or ()):
        errs.append(forbidden(WHOLE, "static pods do not support resource claims"))
        return
    seen: set[str] = set()
    for position, claim in enumerate(claims):
        where = path.index(position)
        name = claim.get("name", "")
        if not name:
            errs.append(required(where.child("name"), ""))
        elif name in seen:
            errs.append(duplicate(where.child("name"), name))
        else:
            well_formed(name, check_dns1123_label, where, "name", errs)
            seen.add(name)
        _validate_claim_source(claim, where, errs)


_CLAIM_SOURCES: Final[dict[str, Callable[[str], list[str]]]] = {
    "resourceClaimName": check_dns1123_subdomain,
    "resourceClaimTemplateName": check_dns1123_subdomain,
}


def _validate_claim_source(claim: Object, path: Path, errs: list[FieldError]) -> None:
    given = [name for name in _CLAIM_SOURCES if claim.get(name) is not None]
    if len(given) != 1:
        why = (
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            if given
            else "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        )
        errs.append(invalid(path, internal_form("core.v1.PodResourceClaim", claim), why))
    for name in given:
        well_formed(claim[name], _CLAIM_SOURCES[name], path, name, errs)
