"""Where volumes appear in a container: as directories, and as raw devices."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.core.pod_spec.paths import has_backsteps, validate_descending_path
from pilothouse.machinery.field_errors import (
    FieldError,
    Path,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from pilothouse.machinery.objects import Object

Volumes = dict[str, Object]

_PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE: Final = ("Disabled", "Enabled", "IfPossible")
_OPTIONS: Final = ("nodev", "noexec", "nosuid")


def validate_mounts(container: Object, volumes: Volumes, path: Path, errs: list[FieldError]) -> None:
    """Errors of a container's mounts; ``volumes`` are the pod's sound ones, ``path`` is the container's."""
    at = path.child("volumeMounts")
    devices = {device.get("name", ""): device.get("devicePath", "") for device in container.get("volumeDevices") or ()}
    device_paths = set(devices.values())
    points: set[str] = set()
    for position, mount in enumerate(container["volumeMounts"]):
        name, point = mount.get("name", ""), mount.get("mountPath", "")
        if name not in volumes or not point or point in points or devices:
            _validate_mount_point(name, point, volumes, points, at.index(position), errs)
            if name in devices:
                why = "must not already exist in volumeDevices"
                errs.append(invalid(at.index(position).child("name"), name, why))
            if point in device_paths:
                why = "must not already exist as a path in volumeDevices"
                errs.append(invalid(at.index(position).child("mountPath"), point, why))
        points.add(point)
        if len(mount) > 2:
            _validate_mount_options(mount, container, volumes, at, at.index(position), errs)


def _validate_mount_point(
    name: str, point: str, volumes: Volumes, points: set[str], path: Path, errs: list[FieldError]
) -> None:
    if not name:
        errs.append(required(path.child("name"), ""))
    if name not in volumes:
        errs.append(not_found(path.child("name"), name))
    if not point:
        errs.append(required(path.child("mountPath"), ""))
    if point in points:
        errs.append(invalid(path.child("mountPath"), point, "must be unique"))


def _validate_mount_options(
    mount: Object, container: Object, volumes: Volumes, at: Path, path: Path, errs: list[FieldError]
) -> None:
    """``at`` is the list's path, which kube-apiserver gives for these fields, ``path`` the mount's own."""
    sub, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    if sub:
        validate_descending_path(sub, at, "subPath", errs)
    if expression:
        if sub:
            why = "subPathExpr and subPath are mutually exclusive"
            errs.append(invalid(path.child("subPathExpr"), expression, why))
        validate_descending_path(expression, at, "subPathExpr", errs)
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        if propagation not in _PROPAGATIONS:
            errs.append(not_supported(at.child("mountPropagation"), propagation, _PROPAGATIONS))
        if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
            why = "Bidirectional mount propagation is available only to privileged containers"
            errs.append(forbidden(at.child("mountPropagation"), why))
    if "recursiveReadOnly" in mount:
        _validate_recursive(mount, at.child("recursiveReadOnly"), errs)
    options = mount.get("bindMountOptions")
    if options:
        _validate_bind_options(options, path.child("bindMountOptions"), errs)
        if "image" in volumes.get(mount.get("name", ""), ()):
            why = "bindMountOptions may not be used with image volumes"
            errs.append(invalid(path.child("bindMountOptions"), options, why))


def _validate_recursive(mount: Object, path: Path, errs: list[FieldError]) -> None:
    mode = mount["recursiveReadOnly"]
    if mode not in _RECURSIVE:
        errs.append(not_supported(path, mode, _RECURSIVE))
    elif mode != "Disabled":
        if not mount.get("readOnly"):
            errs.append(forbidden(path, "may only be specified when readOnly is true"))
        if mount.get("mountPropagation", "None") != "None":
            errs.append(forbidden(path, "may only be specified when mountPropagation is None or not specified"))


def _validate_bind_options(options: list[str], path: Path, errs: list[FieldError]) -> None:
    seen: set[str] = set()
    for position, option in enumerate(options):
        if option not in _OPTIONS:
            errs.append(not_supported(path.index(position), option, _OPTIONS, plain=True))
        if option in seen:
            errs.append(duplicate(path.index(position), option))
        seen.add(option)


def validate_devices(container: Object, volumes: Volumes, path: Path, errs: list[FieldError]) -> None:
    """Errors of a container's raw devices; ``path`` is the container's."""
    at = path.child("volumeDevices")
    mounts = {mount.get("name", ""): mount.get("mountPath", "") for mount in container.get("volumeMounts") or ()}
    mount_paths = set(mounts.values())
    names: set[str] = set()
    points: set[str] = set()
    for position, device in enumerate(container["volumeDevices"]):
        name, point, where = device.get("name", ""), device.get("devicePath", ""), at.index(position)
        _validate_device_name(name, volumes, names, where, errs)
        if not point:
            errs.append(required(where.child("devicePath"), ""))
        if point in points:
            errs.append(invalid(where.child("devicePath"), point, "must be unique"))
        if has_backsteps(point):
            errs.append(invalid(where.child("devicePath"), point, "can not contain backsteps ('..')"))
        else:
            points.add(point)
        if name in mounts:
            errs.append(invalid(where.child("name"), name, "must not already exist in volumeMounts"))
        if point in mount_paths:
            errs.append(invalid(where.child("devicePath"), point, "must not already exist as a path in volumeMounts"))
        if name:
            names.add(name)


def _validate_device_name(name: str, volumes: Volumes, names: set[str], path: Path, errs: list[FieldError]) -> None:
    if not name:
        errs.append(required(path.child("name"), ""))
    if name in names:
        errs.append(invalid(path.child("name"), name, "must be unique"))
    volume = volumes.get(name)
    if volume is None:
        errs.append(not_found(path.child("name"), name))
    elif "persistentVolumeClaim" not in volume and "ephemeral" not in volume:
        why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        errs.append(invalid(path.child("name"), name, why))
