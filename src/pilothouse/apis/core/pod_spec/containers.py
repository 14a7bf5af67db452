"""Containers: regular, init (with sidecars) and ephemeral ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pilothouse.apis.core.checks import SPACE
from pilothouse.apis.core.pod_spec.environment import validate_env, validate_env_from
from pilothouse.apis.core.pod_spec.handlers import validate_lifecycle, validate_probes
from pilothouse.apis.core.pod_spec.mounts import validate_devices, validate_mounts
from pilothouse.apis.core.pod_spec.resources import validate_container_resources
from pilothouse.apis.core.pod_spec.security import validate_container_security
from pilothouse.apis.core.pod_spec.volumes import PULL_POLICIES
from pilothouse.machinery.field_errors import (
    FieldError,
    Named,
    Path,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_many,
)
from pilothouse.machinery.names import check_dns1123_label, check_port_name, check_port_number
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.emptied import as_given, has_emptied

if TYPE_CHECKING:
    from pilothouse.apis.core.pod_spec.options import PodValidationOptions


_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")
_RULE_ACTIONS: Final = ("Restart", "RestartAllContainers")
_RULE_OPERATORS: Final = ("In", "NotIn")
_RESIZED: Final = ("cpu", "memory")
_RESIZE_POLICIES: Final = ("NotRequired", "RestartContainer")
_NO_EPHEMERAL: Final = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe", "readinessProbe",
    "startupProbe", "lifecycle",
)  # fmt: skip
_NO_POLICY: Final = "must specify restartPolicy when restart rules are used"


@dataclass(slots=True)
class Surroundings:
    """What containers of one pod are judged by."""

    options: PodValidationOptions
    volumes: dict[str, Object]
    claim_names: set[str]
    restart_policy: str
    grace: int | None
    system: str | None
    host_users: bool


def validate_containers(containers: list[Object], around: Surroundings, path: Path, errs: list[FieldError]) -> None:
    """Errors of the regular containers; ``path`` is the list's."""
    if not containers:
        errs.append(required(path, ""))
        return
    names: set[str] = set()
    for position, container in enumerate(containers):
        where = path.index(position)
        _validate_common(container, around, where, errs)
        name = container.get("name", "")
        if name in names:
            errs.append(duplicate(where.child("name"), name))
        names.add(name)
        if "lifecycle" in container:
            validate_lifecycle(container["lifecycle"], around.grace, around.system, where.child("lifecycle"), errs)
        validate_probes(container, around.grace, where, errs)
        if "restartPolicy" in container or "restartPolicyRules" in container:
            if around.options.allow_restart_rules:
                _validate_restarts(container, where, errs, around.options)
            elif "restartPolicy" in container:
                errs.append(forbidden(where.child("restartPolicy"), "may not be set for non-init containers"))
    _validate_host_ports(containers, path, errs)


def validate_init_containers(
    containers: list[Object], regular: list[Object], around: Surroundings, path: Path, errs: list[FieldError]
) -> None:
    """Errors of the init containers; those that restart always are sidecars and may have probes and hooks."""
    names = {container.get("name", "") for container in regular}
    for position, container in enumerate(containers):
        where = path.index(position)
        _validate_common(container, around, where, errs)
        if "restartPolicy" in container:
            _validate_init_restarts(container, where, errs, around.options)
        elif "restartPolicyRules" in container:
            errs.append(required(where.child("restartPolicy"), _NO_POLICY))
        name = container.get("name", "")
        if name in names:
            errs.append(duplicate(where.child("name"), name))
        elif name:
            names.add(name)
        # They run one after another, so each has the host's ports to itself; kube-apiserver counts from 0 each time.
        _validate_host_ports([container], path, errs)
        is_sidecar = container.get("restartPolicy") == "Always"
        if is_sidecar:
            if "lifecycle" in container:
                validate_lifecycle(container["lifecycle"], around.grace, around.system, where.child("lifecycle"), errs)
            validate_probes(container, around.grace, where, errs)
        else:
            why = "may not be set for init containers without restartPolicy=Always"
            fields = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
            errs += (forbidden(where.child(field), why) for field in fields if field in container)
        if not is_sidecar and not around.options.allow_restart_container_for_init:
            _validate_no_restart_on_resize(container, where, errs)


def _validate_no_restart_on_resize(container: Object, path: Path, errs: list[FieldError]) -> None:
    for position, policy in enumerate(container.get("resizePolicy") or ()):
        if policy.get("restartPolicy") == "RestartContainer":
            where = path.child("resizePolicy").index(position).child("restartPolicy")
            why = "must not be set to 'RestartContainer' for non-sidecar initContainers"
            errs.append(invalid(where, "RestartContainer", why))


def validate_ephemeral_containers(spec: Object, around: Surroundings, path: Path, errs: list[FieldError]) -> None:
    """Errors of the ephemeral containers, which may serve nobody and keep nothing; ``path`` is the list's."""
    targets = {c.get("name", "") for kind in ("containers", "initContainers") for c in spec.get(kind) or ()}
    names = set(targets)
    for position, container in enumerate(spec["ephemeralContainers"]):
        where = path.index(position)
        _validate_common(container, around, where, errs)
        validate_image(container, where, errs)
        name = container.get("name", "")
        if name in names:
            errs.append(duplicate(where.child("name"), name))
        names.add(name)
        target = container.get("targetContainerName", "")
        if target and target not in targets:
            errs.append(not_found(where.child("targetContainerName"), target))
        why = "cannot be set for an Ephemeral Container"
        errs += (forbidden(where.child(field), why) for field in _NO_EPHEMERAL if _is_set(container, field))
        for at, mount in enumerate(container.get("volumeMounts") or ()):
            for field in ("subPath", "subPathExpr"):
                if mount.get(field):
                    errs.append(forbidden(where.child("volumeMounts").index(at).child(field), why))


def _is_set(container: Object, field: str) -> bool:
    if field == "resources":
        return bool(container.get(field)) or has_emptied(container.get(field))
    return as_given(container, field) is not None


def validate_image(container: Object, path: Path, errs: list[FieldError]) -> None:
    """Images of pods may not be padded; those of templates always could."""
    image = container.get("image", "")
    if image and (image[0] in SPACE or image[-1] in SPACE):
        errs.append(invalid(path.child("image"), image, "must not have leading or trailing whitespace"))


def _validate_common(container: Object, around: Surroundings, path: Path, errs: list[FieldError]) -> None:
    name = container.get("name", "")
    if not name:
        errs.append(required(path.child("name"), ""))
    else:
        errs += [invalid(path.child("name"), name, message) for message in check_dns1123_label(name)]
    if not container.get("image"):
        errs.append(required(path.child("image"), ""))
    _validate_policy(container, "terminationMessagePolicy", _MESSAGE_POLICIES, path, errs)
    if "ports" in container:
        _validate_ports(container["ports"], path.child("ports"), errs)
    if "env" in container:
        validate_env(container["env"], path.child("env"), errs, with_files=around.options.allow_env_files)
    if "envFrom" in container:
        validate_env_from(container["envFrom"], path.child("envFrom"), errs)
    if "volumeMounts" in container:
        validate_mounts(container, around.volumes, path, errs)
    if "volumeDevices" in container:
        validate_devices(container, around.volumes, path, errs)
    _validate_policy(container, "imagePullPolicy", PULL_POLICIES, path, errs)
    resources = container.get("resources")
    if resources:
        validate_container_resources(resources, around.claim_names, path.child("resources"), errs, around.options)
    if "resizePolicy" in container:
        _validate_resizing(container["resizePolicy"], around.restart_policy, path.child("resizePolicy"), errs)
    context = container.get("securityContext")
    if context:
        validate_container_security(context, around.host_users, path.child("securityContext"), errs, around.options)


def _validate_policy(
    container: Object, name: str, supported: tuple[str, ...], path: Path, errs: list[FieldError]
) -> None:
    policy = container.get(name, "")
    if policy not in supported:
        where = path.child(name)
        errs.append(not_supported(where, policy, supported) if policy else required(where, ""))


def _validate_ports(ports: list[Object], path: Path, errs: list[FieldError]) -> None:
    names: set[str] = set()
    for position, port in enumerate(ports):
        name = port.get("name", "")
        if name:
            if messages := check_port_name(name):
                errs += (invalid(path.index(position).child("name"), name, message) for message in messages)
            elif name in names:
                errs.append(duplicate(path.index(position).child("name"), name))
            names.add(name)
        number, host = port.get("containerPort", 0), port.get("hostPort", 0)
        if not number:
            errs.append(required(path.index(position).child("containerPort"), ""))
        elif not 0 < number < 65536:
            where = path.index(position).child("containerPort")
            errs += (invalid(where, number, message) for message in check_port_number(number))
        if host and not 0 < host < 65536:
            where = path.index(position).child("hostPort")
            errs += (invalid(where, host, message) for message in check_port_number(host))
        _validate_policy(port, "protocol", _PROTOCOLS, path.index(position), errs)


def _validate_host_ports(containers: list[Object], path: Path, errs: list[FieldError]) -> None:
    seen: set[str] = set()
    for at, container in enumerate(containers):
        for position, port in enumerate(container.get("ports") or ()):
            number = port.get("hostPort")
            if number:
                taken = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{number}"
                if taken in seen:
                    errs.append(duplicate(path.index(at).child("ports").index(position).child("hostPort"), taken))
                seen.add(taken)


def _validate_resizing(policies: list[Object], restart_policy: str, path: Path, errs: list[FieldError]) -> None:
    seen: set[str] = set()
    for position, policy in enumerate(policies):
        name, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if name in seen:
            errs.append(duplicate(path.index(position), Named(name)))
        seen.add(name)
        for value, supported in ((name, _RESIZED), (restart, _RESIZE_POLICIES)):
            if value not in supported:
                errs.append(not_supported(path, value, supported) if value else required(path, ""))
        if restart_policy == "Never" and restart != "NotRequired":
            errs.append(invalid(path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'"))


def _validate_init_restarts(
    container: Object, path: Path, errs: list[FieldError], options: PodValidationOptions
) -> None:
    policy = container["restartPolicy"]
    if not options.allow_restart_rules:
        if policy != "Always":
            errs.append(not_supported(path.child("restartPolicy"), policy, ("Always",)))
    elif policy != "Always" or options.allow_restart_of_all:
        _validate_restarts(container, path, errs, options)
    elif container.get("restartPolicyRules"):
        why = "restartPolicyRules are not allowed for init containers with restart policy Always"
        errs.append(forbidden(path.child("restartPolicyRules"), why))


def _validate_restarts(container: Object, path: Path, errs: list[FieldError], options: PodValidationOptions) -> None:
    """A container's own restart policy, and rules by exit code."""
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    if policy is None:
        if rules:
            errs.append(required(path.child("restartPolicy"), _NO_POLICY))
    elif policy not in _RESTART_POLICIES:
        errs.append(not_supported(path.child("restartPolicy"), policy, _RESTART_POLICIES))
    if len(rules) > 20:
        errs.append(too_many(path.child("restartPolicyRules"), len(rules), 20))
    actions = _RULE_ACTIONS if options.allow_restart_of_all else _RULE_ACTIONS[:1]
    for position, rule in enumerate(rules):
        where = path.child("restartPolicyRules").index(position)
        action, codes = rule.get("action", ""), rule.get("exitCodes")
        if action not in actions:
            errs.append(not_supported(where.child("action"), action, actions))
        if codes is None:
            errs.append(required(where.child("exitCodes"), "must be specified"))
            continue
        if codes.get("operator", "") not in _RULE_OPERATORS:
            at = where.child("exitCodes", "operator")
            errs.append(not_supported(at, codes.get("operator", ""), _RULE_OPERATORS))
        if len(codes.get("values") or ()) > 255:
            errs.append(too_many(where.child("exitCodes", "values"), len(codes["values"]), 255))
