"""Environment variables: where their values come from, and the fields of the pod that can be asked for.

The field selectors are shared with downward API volumes.
"""

from __future__ import annotations

from typing import Final

from pilothouse.apis.core.pod_spec.paths import validate_no_backsteps
from pilothouse.apis.core.pod_spec.traversal import containers_at
from pilothouse.apis.core.resource_names import amount
from pilothouse.apis.object_names import name_is_dns_subdomain
from pilothouse.apis.validation import present, well_formed
from pilothouse.machinery.field_errors import FieldError, Path, invalid, not_found, not_supported, required
from pilothouse.machinery.names import (
    check_config_map_key,
    check_dns1123_label,
    check_dns1123_subdomain,
    check_label_key,
    check_relaxed_env_var_name,
)
from pilothouse.machinery.objects import Object

VOLUME_FIELDS: Final = (
    "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid",
)  # fmt: skip
_ENV_FIELDS: Final = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
    "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
_KNOWN_FIELDS: Final = {*VOLUME_FIELDS, *_ENV_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase"}
_RESOURCES: Final = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory",
    "requests.cpu", "requests.ephemeral-storage", "requests.memory",
)  # fmt: skip
_HUGE_PAGES: Final = ("limits.hugepages-", "requests.hugepages-")
_BYTE_DIVISORS: Final = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"]
_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_ONE_ONLY: Final = "may not have more than one field specified at a time"


def validate_env(variables: list[Object], path: Path, errs: list[FieldError], *, with_files: bool) -> None:
    """Errors of a container's variables; ``path`` is the list's."""
    for position, variable in enumerate(variables):
        name = variable.get("name", "")
        messages = check_relaxed_env_var_name(name) if name else ()
        if not name:
            errs.append(required(path.index(position).child("name"), ""))
        elif messages:
            errs += (invalid(path.index(position).child("name"), name, message) for message in messages)
        if "valueFrom" in variable:
            _validate_value_from(variable, path.index(position).child("valueFrom"), errs, with_files)


def _validate_value_from(variable: Object, path: Path, errs: list[FieldError], with_files: bool) -> None:
    source = variable["valueFrom"]
    given = [name for name in _SOURCES if name in source]
    for name in given:
        _VALIDATE[name](source[name], path.child(name), errs)
    if not given:
        last = ", `secretKeyRef` or `fileKeyRef`" if with_files else " or `secretKeyRef`"
        why = f"must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`{last}"
        errs.append(invalid(path, "", why))
    elif variable.get("value"):
        errs.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(given) > 1:
        errs.append(invalid(path, "", _ONE_ONLY))


def _validate_env_field(selector: Object, path: Path, errs: list[FieldError]) -> None:
    validate_field_selector(selector, _ENV_FIELDS, path, errs)


def validate_field_selector(selector: Object, allowed: tuple[str, ...], path: Path, errs: list[FieldError]) -> None:
    """A field of the pod, one of those that are ``allowed`` here."""
    version, field = selector.get("apiVersion", ""), selector.get("fieldPath", "")
    if not version or not field:
        errs.append(required(path.child("fieldPath" if version else "apiVersion"), ""))
        return
    base, key = _split_subscript(field)
    why = _refuse_field(version, field, base, key)
    if why:
        errs.append(invalid(path.child("fieldPath"), field, f"error converting fieldPath: {why}"))
    elif key is not None:
        key = key.lower() if base == "metadata.annotations" else key
        errs += (invalid(path, key, message) for message in check_label_key(key))
    else:
        field = "spec.nodeName" if field == "spec.host" else field
        if field not in allowed:
            errs.append(not_supported(path.child("fieldPath"), field, allowed, plain=True))


def _split_subscript(field: str) -> tuple[str, str | None]:
    """``metadata.labels['app']`` → ``metadata.labels``, ``app``."""
    base, found, key = field.removesuffix("']").partition("['")
    if not field.endswith("']") or not found or not base:
        return field, None
    return base, key


def _refuse_field(version: str, field: str, base: str, key: str | None) -> str:
    if version != "v1":
        return f"unsupported pod version: {version}"
    if key is not None:
        known = base in ("metadata.annotations", "metadata.labels")
        return "" if known else f"field label does not support subscript: {field}"
    return "" if field in _KNOWN_FIELDS or field == "spec.host" else f"field label not supported: {field}"


def _validate_env_resource(selector: Object, path: Path, errs: list[FieldError]) -> None:
    validate_resource_selector(selector, path, errs, in_volume=False)


def validate_resource_selector(selector: Object, path: Path, errs: list[FieldError], *, in_volume: bool) -> None:
    """A container's request or limit; a volume has to say which container's."""
    name = selector.get("resource", "")
    if in_volume and not selector.get("containerName"):
        errs.append(required(path.child("containerName"), ""))
    elif not name:
        errs.append(required(path.child("resource"), ""))
    elif name not in _RESOURCES and not name.startswith(_HUGE_PAGES):
        errs.append(not_supported(path.child("resource"), name, _RESOURCES, plain=True))
    divisor = selector.get("divisor", "0")
    if not divisor or amount(divisor).is_zero:
        return
    kind = _divided(name)
    if kind == "cpu" and divisor not in ("1", "1m"):
        why = "only divisor's values 1m and 1 are supported with the cpu resource"
        errs.append(invalid(path.child("divisor"), name, why))
    elif kind and kind != "cpu" and divisor not in _BYTE_DIVISORS:
        why = f"only divisor's values {', '.join(_BYTE_DIVISORS)} are supported with the {kind} resource"
        errs.append(invalid(path.child("divisor"), name, why))


def _divided(name: str) -> str:
    if name.startswith(_HUGE_PAGES):
        return "hugepages"
    kind = name.partition(".")[2] if name in _RESOURCES else ""
    return "local ephemeral storage" if kind == "ephemeral-storage" else kind


def _validate_key_selector(selector: Object, path: Path, errs: list[FieldError]) -> None:
    well_formed(selector.get("name", ""), check_dns1123_subdomain, path, "name", errs)
    if present(selector.get("key"), path, "key", errs):
        well_formed(selector["key"], check_config_map_key, path, "key", errs)


def _validate_file_key(selector: Object, path: Path, errs: list[FieldError]) -> None:
    if present(selector.get("key"), path, "key", errs):
        well_formed(selector["key"], check_relaxed_env_var_name, path, "key", errs)
    if present(selector.get("volumeName"), path, "volumeName", errs):
        well_formed(selector["volumeName"], check_dns1123_label, path, "volumeName", errs)
    if present(selector.get("path"), path, "path", errs):
        validate_no_backsteps(selector["path"], path, "path", errs)


_VALIDATE: Final = {
    "fieldRef": _validate_env_field,
    "resourceFieldRef": _validate_env_resource,
    "configMapKeyRef": _validate_key_selector,
    "secretKeyRef": _validate_key_selector,
    "fileKeyRef": _validate_file_key,
}


def validate_env_from(sources: list[Object], path: Path, errs: list[FieldError]) -> None:
    """Config maps and secrets that become variables; ``path`` is the list's."""
    for position, source in enumerate(sources):
        where = path.index(position)
        prefix = source.get("prefix", "")
        if prefix:
            well_formed(prefix, check_relaxed_env_var_name, where, "prefix", errs)
        given = [kind for kind in ("configMapRef", "secretRef") if kind in source]
        for kind in given:
            at, name = where.child(kind), source[kind].get("name", "")
            if present(name, at, "name", errs):
                errs += (invalid(at.child("name"), name, message) for message in name_is_dns_subdomain(name, True))
        if not given:
            errs.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            errs.append(invalid(path, "", _ONE_ONLY))


def validate_file_volumes(spec: Object, path: Path, errs: list[FieldError]) -> None:
    """Variables read from files read them from empty directories of the pod. ``path`` is the spec's."""
    # The last volume of a name counts, as in kube-apiserver.
    volumes = {volume.get("name", ""): volume for volume in spec.get("volumes") or ()}
    for container, at in containers_at(spec, path):
        for position, variable in enumerate(container.get("env") or ()):
            source = variable.get("valueFrom")
            if source and "fileKeyRef" in source:
                where = at.child("env").index(position).child("valueFrom", "fileKeyRef")
                _validate_file_volume(source["fileKeyRef"], volumes, where, errs)


def _validate_file_volume(selector: Object, volumes: dict[str, Object], path: Path, errs: list[FieldError]) -> None:
    name = selector.get("volumeName", "")
    if name not in volumes:
        errs.append(not_found(path.child("volumeName"), name))
    elif "emptyDir" not in volumes[name]:
        errs.append(invalid(path.child("volumeName"), name, "referenced volume must be of type emptyDir"))
