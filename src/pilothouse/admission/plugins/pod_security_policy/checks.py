"""Whether a pod fits a policy, in the words of the plug-in that kube-apiserver once had."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pilothouse.apis.core.pod_spec.annotations import APP_ARMOR_PREFIX, SECCOMP_POD, SECCOMP_PREFIX
from pilothouse.apis.legacy.pod_security_policy import ALL, APP_ARMOR_ALLOWED, SECCOMP_ALLOWED, covers
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, invalid, required
from pilothouse.machinery.objects import Object

_SPEC: Final = Path("spec")
_CONTEXT: Final = Path("spec", "securityContext")
_NOTES: Final = Path("pod", "metadata", "annotations")
_VOLUMES: Final = {"cephfs": "cephFS"}
_SAFE_SYSCTLS: Final = ("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies")
_HOST: Final = (
    ("hostNetwork", "Host network is not allowed to be used"),
    ("hostPID", "Host PID is not allowed to be used"),
    ("hostIPC", "Host IPC is not allowed to be used"),
)


def judge(pod: Object, policy: Object) -> list[FieldError]:
    """All ways in which a pod does not fit."""
    spec, rules = pod["spec"], policy["spec"]
    context = spec.get("securityContext") or {}
    errs: list[FieldError] = []
    group = context.get("fsGroup")
    _judge_groups([] if group is None else [group], rules.get("fsGroup"), _CONTEXT.child("fsGroup"), errs)
    groups = context.get("supplementalGroups") or []
    _judge_groups(groups, rules.get("supplementalGroups"), _CONTEXT.child("supplementalGroups"), errs)
    _judge_seccomp(pod, policy, errs)
    _judge_linux(context.get("seLinuxOptions"), rules, _CONTEXT.child("seLinuxOptions"), errs)
    errs += (invalid(_CONTEXT.child(name), True, why) for name, why in _HOST if spec.get(name) and not rules.get(name))
    _judge_sysctls(context.get("sysctls") or [], rules, errs)
    _judge_volumes(spec, rules, errs)
    allowed = (rules.get("runtimeClass") or {}).get("allowedRuntimeClassNames") or []
    name = spec.get("runtimeClassName")
    if rules.get("runtimeClass") is not None and name is not None and name not in allowed and ALL not in allowed:
        errs.append(invalid(_SPEC.child("runtimeClassName"), name, f"{name} is not an allowed runtime class name"))
    for path, container in containers_of(spec):
        _judge_container(pod, container, path, policy, errs)
    return errs


def containers_of(spec: Object) -> Iterator[tuple[Path, Object]]:
    """All containers with their paths, those that run first before the others."""
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for at, container in enumerate(spec.get(name) or ()):
            yield _SPEC.child(name).index(at), container


def _is_within(number: int, ranges: list[Object]) -> bool:
    return any(each.get("min", 0) <= number <= each.get("max", 0) for each in ranges)


def _show_ranges(ranges: list[Object]) -> str:
    shown = " ".join(f"{{{each.get('min', 0)} {each.get('max', 0)}}}" for each in ranges)
    return f"[{shown}]"


def _judge_groups(groups: list[int], rule: Object | None, path: Path, errs: list[FieldError]) -> None:
    rule = rule or {}
    kind, ranges = rule.get("rule"), rule.get("ranges") or []
    if kind == "MustRunAs" and not groups:
        errs.append(invalid(path, groups, "unable to validate empty groups against required ranges"))
    if kind in ("MustRunAs", "MayRunAs"):
        shown = _show_ranges(ranges)
        outside = (group for group in groups if not _is_within(group, ranges))
        errs += (invalid(path, groups, f"group {group} must be in the ranges: {shown}") for group in outside)


def _judge_linux(options: Object | None, rules: Object, path: Path, errs: list[FieldError]) -> None:
    rule = rules.get("seLinux") or {}
    if rule.get("rule") != "MustRunAs":
        return
    if options is None:
        errs.append(required(path, ""))
        return
    wanted = rule.get("seLinuxOptions") or {}
    for name in ("level", "role", "type", "user"):
        want, have = wanted.get(name, ""), options.get(name, "")
        if want != have and not (name == "level" and _same_level(want, have)):
            errs.append(invalid(path.child(name), have, f"must be {want}"))


def _same_level(one: str, other: str) -> bool:
    """Whether levels differ in the order of their categories alone."""
    parts = [text.split(":", 1) for text in (one, other)]
    if any(len(part) != 2 for part in parts):
        return False
    return parts[0][0] == parts[1][0] and sorted(parts[0][1].split(",")) == sorted(parts[1][1].split(","))


def _judge_seccomp(pod: Object, policy: Object, errs: list[FieldError]) -> None:
    text = (policy["metadata"].get("annotations") or {}).get(SECCOMP_ALLOWED)
    allowed = [] if text is None else text.split(",")
    annotations = pod["metadata"].get("annotations") or {}
    context = pod["spec"].get("securityContext") or {}
    named = annotations.get(SECCOMP_POD) or _profile_name(context.get("seccompProfile"))
    places = [(SECCOMP_POD, named)]
    for _, container in containers_of(pod["spec"]):
        key = SECCOMP_PREFIX + container.get("name", "")
        own = _profile_name((container.get("securityContext") or {}).get("seccompProfile"))
        places.append((key, annotations.get(key) or own or named))
    for key, profile in places:
        if ALL in allowed or (not profile and not allowed) or profile in allowed:
            continue
        why = f"{profile} is not an allowed seccomp profile. Valid values are {text or ''}"
        errs.append(forbidden(_NOTES.key(key), why if allowed else "seccomp may not be set"))


def _profile_name(profile: Object | None) -> str:
    match (profile or {}).get("type"):
        case "RuntimeDefault":
            return "runtime/default"
        case "Unconfined":
            return "unconfined"
        case "Localhost":
            return f"localhost/{(profile or {}).get('localhostProfile', '')}"
    return ""


def _judge_sysctls(sysctls: list[Object], rules: Object, errs: list[FieldError]) -> None:
    path = Path("pod", "spec", "securityContext").child("sysctls")
    for at, sysctl in enumerate(sysctls):
        name = sysctl.get("name", "")
        if any(covers(pattern, name) for pattern in rules.get("forbiddenSysctls") or ()):
            errs.append(forbidden(path.index(at), f'sysctl "{name}" is not allowed'))
        elif name not in _SAFE_SYSCTLS and not any(
            covers(pattern, name) for pattern in rules.get("allowedUnsafeSysctls") or ()
        ):
            errs.append(forbidden(path.index(at), f'unsafe sysctl "{name}" is not allowed'))


def _judge_volumes(spec: Object, rules: Object, errs: list[FieldError]) -> None:
    allowed = rules.get("volumes") or []
    for at, volume in enumerate(spec.get("volumes") or ()):
        path = _SPEC.child("volumes").index(at)
        key = next((name for name in volume if name != "name"), "")
        kind = _VOLUMES.get(key, key)
        if ALL not in allowed and kind not in allowed:
            errs.append(invalid(path, kind, f"{kind} volumes are not allowed to be used"))
        elif kind == "hostPath":
            _judge_host_path(spec, volume, path, rules.get("allowedHostPaths") or [], errs)
        elif kind == "flexVolume":
            drivers = [each.get("driver") for each in rules.get("allowedFlexVolumes") or ()]
            if drivers and volume[key].get("driver") not in drivers:
                why = "Flexvolume driver is not allowed to be used"
                errs.append(invalid(path.child("driver"), volume[key].get("driver", ""), why))
        elif kind == "csi":
            drivers = [each.get("name") for each in rules.get("allowedCSIDrivers") or ()]
            if drivers and volume[key].get("driver") not in drivers:
                why = "Inline CSI driver is not allowed to be used"
                errs.append(invalid(path.child("csi", "driver"), volume[key].get("driver", ""), why))


def _judge_host_path(spec: Object, volume: Object, path: Path, allowed: list[Object], errs: list[FieldError]) -> None:
    place = volume["hostPath"].get("path", "")
    fitting = [each for each in allowed if _is_below(place, each.get("pathPrefix", ""))]
    if allowed and not fitting:
        errs.append(invalid(path.child("hostPath", "pathPrefix"), place, "is not allowed to be used"))
    elif fitting and all(each.get("readOnly") for each in fitting):
        for where, container in containers_of(spec):
            for at, mount in enumerate(container.get("volumeMounts") or ()):
                if mount.get("name") == volume.get("name") and not mount.get("readOnly"):
                    there = where.child("volumeMounts").index(at).child("readOnly")
                    errs.append(invalid(there, False, "must be read-only"))


def _is_below(place: str, prefix: str) -> bool:
    """By whole elements: /foo is above /foo/bar and /foo itself, not above /food."""
    parts, wanted = ([part for part in text.split("/") if part] for text in (place, prefix))
    return parts[: len(wanted)] == wanted


def _judge_container(pod: Object, container: Object, path: Path, policy: Object, errs: list[FieldError]) -> None:
    rules, where = policy["spec"], path.child("securityContext")
    around, own = pod["spec"].get("securityContext") or {}, container.get("securityContext") or {}
    inherited = ("runAsUser", "runAsGroup", "runAsNonRoot", "seLinuxOptions")
    context: dict[str, Any] = {**{name: around.get(name) for name in inherited}, **own}
    _judge_user(context, rules.get("runAsUser") or {}, where, errs)
    if rules.get("runAsGroup") is not None:
        group = context.get("runAsGroup")
        _judge_groups([] if group is None else [group], rules["runAsGroup"], where, errs)
    _judge_linux(context.get("seLinuxOptions"), rules, where.child("seLinuxOptions"), errs)
    _judge_app_armor(pod, container, policy, errs)
    if context.get("privileged") and not rules.get("privileged"):
        errs.append(invalid(where.child("privileged"), True, "Privileged containers are not allowed"))
    mount = context.get("procMount") or "Default"
    if mount != "Default":
        errs.append(invalid(where.child("procMount"), mount, "ProcMountType is not allowed"))
    _judge_capabilities(context.get("capabilities"), rules, where.child("capabilities"), errs)
    _judge_ports(container, rules, path, errs)
    read_only = context.get("readOnlyRootFilesystem")
    if rules.get("readOnlyRootFilesystem") and not read_only:
        why = "may not be nil and must be set to true" if read_only is None else "must be set to true"
        errs.append(invalid(where.child("readOnlyRootFilesystem"), read_only, f"ReadOnlyRootFilesystem {why}"))
    escalates = context.get("allowPrivilegeEscalation")
    if rules.get("allowPrivilegeEscalation") is False and escalates is not False:
        why = "Allowing privilege escalation for containers is not allowed"
        errs.append(invalid(where.child("allowPrivilegeEscalation"), escalates, why))


def _judge_user(context: Object, rule: Object, path: Path, errs: list[FieldError]) -> None:
    user, non_root, kind = context.get("runAsUser"), context.get("runAsNonRoot"), rule.get("rule")
    if kind == "MustRunAs":
        ranges = rule.get("ranges") or []
        if user is None:
            errs.append(required(path.child("runAsUser"), ""))
        elif not _is_within(user, ranges):
            errs.append(invalid(path.child("runAsUser"), user, f"must be in the ranges: {_show_ranges(ranges)}"))
    elif kind == "MustRunAsNonRoot":
        if non_root is None and user is None:
            errs.append(required(path.child("runAsNonRoot"), "must be true"))
        elif non_root is False:
            errs.append(invalid(path.child("runAsNonRoot"), False, "must be true"))
        elif user == 0:
            errs.append(invalid(path.child("runAsUser"), user, "running with the root UID is forbidden"))


def _judge_app_armor(pod: Object, container: Object, policy: Object, errs: list[FieldError]) -> None:
    text = (policy["metadata"].get("annotations") or {}).get(APP_ARMOR_ALLOWED)
    if text is None:
        return
    key = APP_ARMOR_PREFIX + container.get("name", "")
    profile = (pod["metadata"].get("annotations") or {}).get(key, "")
    if not profile:
        errs.append(forbidden(_NOTES.key(key), "AppArmor profile must be set"))
    elif profile not in text.split(","):
        errs.append(forbidden(_NOTES.key(key), f'{profile} is not an allowed profile. Allowed values: "{text}"'))


def _judge_capabilities(given: Object | None, rules: Object, path: Path, errs: list[FieldError]) -> None:
    defaults, dropped = rules.get("defaultAddCapabilities") or [], rules.get("requiredDropCapabilities") or []
    allowed = rules.get("allowedCapabilities") or []
    if given is None:
        if defaults or dropped:
            errs.append(invalid(path, None, "required capabilities are not set on the securityContext"))
        return
    if ALL in allowed:
        return
    added = (each for each in given.get("add") or () if each not in defaults and each not in allowed)
    errs += (invalid(path.child("add"), each, "capability may not be added") for each in added)
    drops = given.get("drop") or []
    kept = (each for each in dropped if each not in drops)
    errs += (invalid(path.child("drop"), drops, f"{each} is required to be dropped but was not found") for each in kept)


def _judge_ports(container: Object, rules: Object, path: Path, errs: list[FieldError]) -> None:
    ranges = rules.get("hostPorts") or []
    for port in container.get("ports") or ():
        number = port.get("hostPort") or 0
        if number > 0 and not _is_within(number, ranges):
            shown = ",".join(_show_ports(each) for each in ranges)
            why = f"Host port {number} is not allowed to be used. Allowed ports: [{shown}]"
            errs.append(invalid(path.child("hostPort"), number, why))


def _show_ports(each: Object) -> str:
    low, high = each.get("min", 0), each.get("max", 0)
    return str(low) if low == high else f"{low}-{high}"
