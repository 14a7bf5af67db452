"""The status subresource: what the kubelet and the scheduler report, and what they may not undo."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.core.checks import check_dual_stack
from pilothouse.apis.core.pod.gated_status import validate_node_claims, validate_volume_health
from pilothouse.apis.core.pod.validation import validate_annotations_of_update
from pilothouse.apis.core.pod_spec.options import PodValidationOptions
from pilothouse.apis.core.resource_names import amount
from pilothouse.apis.validation import IMMUTABLE, in_range, well_formed
from pilothouse.machinery.addresses import check_legacy_ip
from pilothouse.machinery.field_errors import (
    FieldError,
    Named,
    Path,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from pilothouse.machinery.names import check_dns1123_label, check_dns1123_subdomain, check_label_key
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.emptied import as_given

STATUS: Final = Path("status")
_OWN_CONDITIONS: Final = frozenset({"PodScheduled", "Ready", "Initialized"})
_HEALTH: Final = ("Healthy", "Unhealthy", "Unknown")
_MAX_MESSAGE: Final = 1024
_MAX_REFERENCE: Final = 256
_CLAIM: Final = "claim:"
_KEPT: Final = ("resourceClaimStatuses", "extendedResourceClaimStatus", "nodeAllocatableResourceClaimStatuses")


def keep_reported_fields(status: Object, old: Object) -> None:
    """Put back what older clients drop because they do not know it."""
    if "qosClass" not in status and "qosClass" in old:
        status["qosClass"] = old["qosClass"]
    for name in _KEPT:
        if as_given(status, name) is None and name in old:
            status[name] = old[name]
    if "observedGeneration" not in status and "observedGeneration" in old:
        status["observedGeneration"] = old["observedGeneration"]
    known: dict[str, list[int]] = {}
    for condition in old.get("conditions") or ():
        known.setdefault(condition.get("type", ""), []).append(condition.get("observedGeneration", 0))
    for condition in status.get("conditions") or ():
        generations = known.get(condition.get("type", ""))
        generation = generations.pop(0) if generations else 0
        if generation and "observedGeneration" not in condition:
            condition["observedGeneration"] = generation


def validate_status_update(pod: Object, old: Object, errs: list[FieldError], options: PodValidationOptions) -> None:
    """Errors of a changed status."""
    validate_annotations_of_update(pod, old, errs, options)
    status, before, spec = pod.get("status") or {}, old.get("status") or {}, pod["spec"]
    for position, condition in enumerate(status.get("conditions") or ()):
        _validate_condition(condition, STATUS.child("conditions").index(position), errs)
    _validate_nomination(status, before, old["spec"], errs, options)
    if status.get("observedGeneration", 0) < 0:
        why = "must be a non-negative integer"
        errs.append(invalid(STATUS.child("observedGeneration"), status["observedGeneration"], why))
    if status.get("qosClass", "") != before.get("qosClass", ""):
        errs.append(invalid(STATUS.child("qosClass"), Named(status.get("qosClass", "")), IMMUTABLE))
    _validate_transitions(status, before, old["spec"], errs, options.allow_restart_of_all)
    _validate_claims(status, spec, errs)
    if status.get("nodeAllocatableResourceClaimStatuses"):
        validate_node_claims(status, spec, STATUS.child("nodeAllocatableResourceClaimStatuses"), errs)
    if status.get("volumeHealth"):
        validate_volume_health(status["volumeHealth"], spec, STATUS.child("volumeHealth"), errs)
    _validate_addresses(status, before, errs, options.strict_addresses)
    system = spec["os"].get("name", "") if "os" in spec else "linux"
    for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for position, container in enumerate(status.get(kind) or ()):
            _validate_user(container, system, STATUS.child(kind).index(position).child("user"), errs)
    for kind, of in (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")):
        containers = {container.get("name", ""): container for container in reversed(spec.get(of) or ())}
        for position, container in enumerate(status.get(kind) or ()):
            _validate_devices(container, containers, status, STATUS.child(kind).index(position), errs)
    for position, container in enumerate(status.get("ephemeralContainerStatuses") or ()):
        if container.get("allocatedResourcesStatus"):
            where = STATUS.child("ephemeralContainerStatuses").index(position).child("allocatedResourcesStatus")
            errs.append(forbidden(where, "must not be specified in container status"))
    if "ImageVolumeWithDigest" in options.gates:
        for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
            for position, container in enumerate(status.get(kind) or ()):
                _validate_mounted_images(container, STATUS.child(kind).index(position), errs)


def _validate_mounted_images(container: Object, path: Path, errs: list[FieldError]) -> None:
    for position, mount in enumerate(container.get("volumeMounts") or ()):
        image = (mount.get("volumeStatus") or {}).get("image")
        if image is None:
            continue
        where = path.child("volumeMounts").index(position).child("volumeStatus", "imageVolumeStatus", "imageRef")
        reference = image.get("imageRef", "")
        if not reference:
            errs.append(required(where, "imageRef must not be empty"))
        if len(reference.encode()) > _MAX_REFERENCE:
            errs.append(too_long(where, reference, _MAX_REFERENCE))


def _validate_condition(condition: Object, path: Path, errs: list[FieldError]) -> None:
    generation = condition.get("observedGeneration", 0)
    if generation < 0:
        errs.append(invalid(path.child("observedGeneration"), generation, "must be a non-negative integer"))
    if condition.get("type", "") not in _OWN_CONDITIONS:
        well_formed(condition.get("type", ""), check_label_key, path, "Type", errs)


def _validate_nomination(
    status: Object, before: Object, old_spec: Object, errs: list[FieldError], options: PodValidationOptions
) -> None:
    name = status.get("nominatedNodeName", "")
    if not name or name == before.get("nominatedNodeName", ""):
        return
    well_formed(name, check_dns1123_subdomain, STATUS, "nominatedNodeName", errs)
    if old_spec.get("nodeName") and "ClearingNominatedNodeNameAfterBinding" in options.gates:
        why = "may not be set on pods that are already bound to a node"
        errs.append(forbidden(STATUS.child("nominatedNodeName"), why))


def _validate_transitions(
    status: Object, before: Object, spec: Object, errs: list[FieldError], rules_restart_all: bool
) -> None:
    """A container that has ended for good does not come back."""
    lists = [("ephemeralContainerStatuses", "")]
    if not (rules_restart_all and _all_may_restart(spec)):
        lists = [("containerStatuses", "containers"), ("initContainerStatuses", "initContainers"), *lists]
    for kind, of in lists:
        containers = {container.get("name", ""): container for container in reversed(spec.get(of) or ())} if of else {}
        alive = [new for new in status.get(kind) or () if "terminated" not in (new.get("state") or ())]
        revived = {new.get("name", "") for new in alive}
        for position, old in enumerate(before.get(kind) or ()):
            ended = (old.get("state") or {}).get("terminated")
            if ended is None:
                continue
            name = old.get("name", "")
            if name not in revived:
                continue
            container = containers.get(name)
            if container is None or not _may_restart(container, spec, ended.get("exitCode", 0)):
                why = "may not be transitioned to non-terminated state"
                errs.append(forbidden(STATUS.child(kind).index(position).child("state"), why))


def _all_may_restart(spec: Object) -> bool:
    return any(
        rule.get("action") == "RestartAllContainers"
        for kind in ("initContainers", "containers")
        for container in spec.get(kind) or ()
        for rule in container.get("restartPolicyRules") or ()
    )


def _may_restart(container: Object, spec: Object, code: int) -> bool:
    policy = container.get("restartPolicy")
    if policy is not None:
        for rule in container.get("restartPolicyRules") or ():
            codes = rule.get("exitCodes") or {}
            listed = code in (codes.get("values") or ())
            if codes and listed == (codes.get("operator") == "In"):
                if rule.get("action") in ("Restart", "RestartAllContainers"):
                    return True
                break
    if policy not in ("Always", "OnFailure", "Never"):
        policy = spec.get("restartPolicy", "")
    return code != 0 if policy == "OnFailure" else policy != "Never"


def _validate_claims(status: Object, spec: Object, errs: list[FieldError]) -> None:
    names = {claim.get("name", "") for claim in spec.get("resourceClaims") or ()}
    seen: set[str] = set()
    for position, claim in enumerate(status.get("resourceClaimStatuses") or ()):
        where, name = STATUS.child("resourceClaimStatuses").index(position), claim.get("name", "")
        if name not in names:
            why = "must match the name of an entry in `spec.resourceClaims`"
            errs.append(invalid(where.child("name"), name, why))
        if name in seen:
            errs.append(duplicate(where.child("name"), name))
        seen.add(name)
        if claim.get("resourceClaimName") is not None:
            well_formed(claim["resourceClaimName"], check_dns1123_subdomain, where, "resourceClaimName", errs)
    extended = status.get("extendedResourceClaimStatus")
    if extended is not None:
        _validate_extended_claim(extended, spec, STATUS.child("extendedResourceClaimStatus"), errs)


def _validate_extended_claim(claim: Object, spec: Object, path: Path, errs: list[FieldError]) -> None:
    containers = {c.get("name", ""): c for kind in ("initContainers", "containers") for c in spec.get(kind) or ()}
    mappings, at = claim.get("requestMappings") or (), path.child("requestMappings")
    if not mappings:
        errs.append(required(at, "at least one request mapping is required"))
    seen: set[tuple[str, str, str]] = set()
    for position, mapping in enumerate(mappings):
        where = at.index(position)
        key = tuple(mapping.get(name, "") for name in ("containerName", "resourceName", "requestName"))
        container = containers.get(key[0])
        if container is None:
            why = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            errs.append(invalid(where.child("containerName"), key[0], why))
        elif key[1] not in ((container.get("resources") or {}).get("requests") or ()):
            why = (
                "must match the extended resource name of an entry in spec.initContainers.resources.requests or"
                " spec.containers.resources.requests"
            )
            errs.append(invalid(where.child("resourceName"), key[1], why))
        well_formed(key[2], check_dns1123_label, path, "requestName", errs)
        if key in seen:
            for name, value in zip(("containerName", "resourceName", "requestName"), key, strict=True):
                errs.append(duplicate(where.child(name), value))
        seen.add(key)
    if not claim.get("resourceClaimName"):
        errs.append(required(path.child("resourceClaimName"), ""))
    else:
        well_formed(claim["resourceClaimName"], check_dns1123_subdomain, path, "resourceClaimName", errs)


def _validate_addresses(status: Object, before: Object, errs: list[FieldError], strict: bool) -> None:
    """Of each family one address at most, and the single field is the first of the list."""
    pods, hosts = status.get("podIPs") or [], status.get("hostIPs") or []
    where = STATUS.child("podIPs")
    _validate_list(pods, before.get("podIPs") or (), where, errs, strict)
    if bool(status.get("podIP")) != bool(pods):
        why = "podIP and podIPs must either both be set or both be unset"
        errs.append(invalid(where, _shown(pods), why))
    elif pods and status["podIP"] != pods[0].get("ip", ""):
        errs.append(invalid(where.index(0).child("ip"), pods[0].get("ip", ""), "must be equal to `podIP`"))
    if hosts:
        where = STATUS.child("hostIPs")
        if status.get("hostIP", "") != hosts[0].get("ip", ""):
            errs.append(invalid(where.index(0).child("ip"), hosts[0].get("ip", ""), "must be equal to `hostIP`"))
        _validate_list(hosts, before.get("hostIPs") or (), where, errs, strict)


def _validate_list(entries: list[Object], old: Any, path: Path, errs: list[FieldError], strict: bool) -> None:
    known = {entry.get("ip", "") for entry in old}
    texts = [entry.get("ip", "") for entry in entries]
    for position, text in enumerate(texts):
        if text not in known:
            errs += (invalid(path.index(position), text, message) for message in check_legacy_ip(text, strict))
    if len(texts) > 1:
        errs += check_dual_stack(path, texts, _shown(entries))


def _shown(entries: list[Object]) -> list[Object] | None:
    return [{"IP": entry.get("ip", "")} for entry in entries] or None


def _validate_user(container: Object, system: str, path: Path, errs: list[FieldError]) -> None:
    user = (container.get("user") or {}).get("linux")
    if user is None:
        return
    where = path.child("linux")
    if system == "windows":
        errs.append(forbidden(where, "cannot be set for a windows pod"))
    elif system == "linux":
        in_range(user.get("uid", 0), 0, 2**32 - 1, where, "uid", errs)
        in_range(user.get("gid", 0), 0, 2**31 - 1, where, "gid", errs)
        for position, group in enumerate(user.get("supplementalGroups") or ()):
            if not 0 <= group < 2**31:
                at = where.child("supplementalGroups").index(position)
                errs.append(invalid(at, group, f"must be between 0 and {2**31 - 1}, inclusive"))


def _validate_devices(
    status: Object, containers: dict[str, Object], pod: Object, path: Path, errs: list[FieldError]
) -> None:
    """The health of devices a container got: of resources it asked for, each device once."""
    container = containers.get(status.get("name", ""))
    for position, resource in enumerate(status.get("allocatedResourcesStatus") or ()):
        where, name = path.child("allocatedResourcesStatus").index(position), resource.get("name", "")
        if container is not None and (why := _refuse_device(name, container, pod)):
            errs.append(invalid(where.child("name"), name, why))
        seen: set[str] = set()
        for at, device in enumerate(resource.get("resources") or ()):
            _validate_device(device, seen, where.child("resources").index(at), errs)


def _refuse_device(name: str, container: Object, pod: Object) -> str:
    resources = container.get("resources") or {}
    if not name.startswith(_CLAIM):
        known = name in (resources.get("requests") or ())
        return "" if known else "must match one of the container's resource requests"
    for claim in resources.get("claims") or ():
        request = claim.get("request")
        if name == _CLAIM + claim.get("name", "") + (f"/{request}" if request else ""):
            return ""
    if _is_mapped(name.removeprefix(_CLAIM), container, pod.get("extendedResourceClaimStatus")):
        return ""
    return (
        "must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when"
        " container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty"
    )


def _is_mapped(name: str, container: Object, extended: Object | None) -> bool:
    claim, _, request = name.partition("/")
    if extended is None or not claim or not request or claim != extended.get("resourceClaimName"):
        return False
    requests = (container.get("resources") or {}).get("requests") or {}
    return any(
        mapping.get("containerName") == container.get("name")
        and mapping.get("requestName") == request
        and not amount(requests.get(mapping.get("resourceName", ""), "0")).is_zero
        for mapping in extended.get("requestMappings") or ()
    )


def _validate_device(device: Object, seen: set[str], path: Path, errs: list[FieldError]) -> None:
    health = device.get("health", "")
    if health not in _HEALTH:
        errs.append(not_supported(path.child("health"), health, _HEALTH))
    message = device.get("message")
    if message is not None:
        if not message:
            errs.append(required(path.child("message"), "must be non-empty if specified"))
        elif len(message.encode()) > _MAX_MESSAGE:
            errs.append(too_long(path.child("message"), message, _MAX_MESSAGE))
    name = device.get("resourceID", "")
    if name in seen:
        errs.append(duplicate(path.child("resourceID"), name))
    seen.add(name)
