"""What makes storage classes, volume attributes classes, capacities and attachments wrong."""

from __future__ import annotations

from typing import Any

from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.core.persistent_volume_validation import validate_volume_spec
from pilothouse.apis.faults import Faults
from pilothouse.apis.metadata import IMMUTABLE
from pilothouse.apis.validating import non_negative_quantity, one_of, well_formed
from pilothouse.machinery import labels, names
from pilothouse.machinery.field_errors import (
    FieldError,
    Path,
    duplicate,
    forbidden,
    invalid,
    required,
    too_long,
    too_long_characters,
)

Object = dict[str, Any]
ROOT = Path()
_PARAMETERS_LIMIT = 512
_SIZE_LIMIT = 256 * 1024
_MESSAGE_LIMIT = 1024
_DRIVER_NAME_LIMIT = 63
_INT32_MAX = 2**31 - 1
_KEPT_OF_CLASS = ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode")


def validate_storage_class(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Faults of a storage class; all but expansion, options and topologies is kept for good."""
    faults = Faults()
    errs = faults.errors
    provisioner = obj.get("provisioner", "")
    if provisioner:
        well_formed_key(provisioner.lower(), Path("provisioner"), errs)
    else:
        faults.declared.append(required(Path("provisioner")))
    _validate_parameters(obj.get("parameters") or {}, errs)
    if obj.get("reclaimPolicy"):
        one_of(obj["reclaimPolicy"], ("Delete", "Retain"), ROOT, "reclaimPolicy", errs)
    if obj.get("volumeBindingMode") is None:
        errs.append(required(Path("volumeBindingMode")))
    else:
        one_of(obj["volumeBindingMode"], ("Immediate", "WaitForFirstConsumer"), ROOT, "volumeBindingMode", errs)
    _validate_topologies(obj.get("allowedTopologies") or (), errs)
    if old is not None:
        for name in _KEPT_OF_CLASS:
            faults.keep_declared(Path(name), obj.get(name), old.get(name))
    return faults.listed()


def well_formed_key(text: str, path: Path, errs: list[FieldError]) -> None:
    """A qualified name; the path is the text's own."""
    errs += (invalid(path, text, message) for message in names.check_label_key(text))


def _validate_parameters(parameters: dict[str, str], errs: list[FieldError]) -> None:
    path = Path("parameters")
    if len(parameters) > _PARAMETERS_LIMIT:
        errs.append(too_long(path, "", _PARAMETERS_LIMIT))
        return
    if "" in parameters:
        errs.append(invalid(path, "", "field can not be empty."))
    if _size(parameters) > _SIZE_LIMIT:
        errs.append(too_long(path, "", _SIZE_LIMIT))


def _size(values: dict[str, str]) -> int:
    return sum(len(key.encode()) + len(value.encode()) for key, value in values.items())


def _validate_topologies(terms: Any, errs: list[FieldError]) -> None:
    seen: set[frozenset[tuple[str, frozenset[str]]]] = set()
    for position, term in enumerate(terms):
        path = Path("allowedTopologies").index(position).child("matchLabelExpressions")
        expressions: dict[str, frozenset[str]] = {}
        for at, expression in enumerate(term.get("matchLabelExpressions") or ()):
            where = path.index(at)
            key, values = expression.get("key", ""), expression.get("values") or ()
            _validate_values(values, where.child("values"), errs)
            well_formed_key(key, where.child("key"), errs)
            if key in expressions:
                errs.append(duplicate(where.child("key"), key))
            expressions[key] = frozenset(values)
        # An empty term equals the unset places the original compares with, once for each term given.
        together = frozenset(expressions.items())
        if together in seen or not together:
            errs.append(duplicate(path, ""))
        seen.add(together)


def _validate_values(values: Any, path: Path, errs: list[FieldError]) -> None:
    if not values:
        errs.append(required(path))
    seen: set[str] = set()
    for at, value in enumerate(values):
        if value in seen:
            errs.append(duplicate(path.index(at), value))
        seen.add(value)


def validate_attributes_class(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Faults of a volume attributes class: driver and parameters never change."""
    errs: list[FieldError] = []
    if old is not None:
        if obj.get("driverName") != old.get("driverName"):
            errs.append(forbidden(Path("driverName"), "updates to driverName are forbidden."))
        if obj.get("parameters") != old.get("parameters"):
            errs.append(forbidden(Path("parameters"), "updates to parameters are forbidden."))
    driver, parameters = obj.get("driverName", ""), obj.get("parameters") or {}
    if driver:
        well_formed_key(driver.lower(), Path("driverName"), errs)
    else:
        errs.append(required(Path("driverName")))
    _validate_parameters(parameters, errs)
    if not parameters:
        errs.append(required(Path("parameters"), "must contain at least one key/value pair"))
    return errs


def validate_capacity(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Faults of a storage capacity: topology and class never change."""
    topology, name = obj.get("nodeTopology"), obj.get("storageClassName", "")
    lenient = old is not None and bool(labels.validate_object(old.get("nodeTopology"), ROOT))
    errs = labels.validate_object(topology, Path("nodeTopology"), allow_invalid_values=lenient)
    well_formed(name, names.check_dns1123_subdomain, ROOT, "storageClassName", errs)
    if obj.get("capacity") is not None:
        non_negative_quantity(obj["capacity"], Path("capacity"), errs)
    if old is not None:
        if topology != old.get("nodeTopology"):
            shown = internal_form("meta.v1.LabelSelector", topology)
            errs.append(invalid(Path("nodeTopology"), shown, IMMUTABLE))
        if name != old.get("storageClassName", ""):
            errs.append(invalid(Path("storageClassName"), name, IMMUTABLE))
    return errs


def validate_attachment(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Faults of a volume attachment: the spec never changes."""
    faults = Faults()
    spec, path = obj["spec"], Path("spec")
    source, attacher = spec.get("source") or {}, spec.get("attacher", "")
    if old is not None:
        validate_driver_name(attacher, path.child("attacher"), faults.errors)
    _validate_source(source, path.child("source"), faults.errors)
    well_formed(spec.get("nodeName", ""), names.check_dns1123_subdomain, path, "nodeName", faults.errors)
    _validate_attachment_status(obj.get("status") or {}, Path("status"), faults.errors)
    volume = source.get("persistentVolumeName")
    if volume is not None:
        where = Path("spec.source.persistentVolumeName")
        faults.errors += (invalid(where, volume, m) for m in names.check_dns1123_subdomain(volume))
    if old is None:
        _declare_attacher(attacher, path.child("attacher"), faults.declared)
    else:
        faults.keep_declared(path, spec, old["spec"])
    return faults.listed()


def validate_driver_name(name: str, path: Path, errs: list[FieldError]) -> None:
    """The name a CSI driver goes by."""
    if not name:
        errs.append(required(path))
        return
    if len(name.encode()) > _DRIVER_NAME_LIMIT:
        errs.append(too_long(path, "", _DRIVER_NAME_LIMIT))
    errs += (invalid(path, name, message) for message in names.check_dns1123_subdomain(name.lower()))


def _declare_attacher(attacher: str, path: Path, errs: list[FieldError]) -> None:
    """The same in the words of the declared rules, which look at new specs only."""
    if not attacher:
        errs.append(required(path))
        return
    errs += (invalid(path, attacher, message) for message in names.check_dns1123_subdomain_caseless(attacher))
    if len(attacher) > _DRIVER_NAME_LIMIT:
        errs.append(too_long_characters(path, attacher, _DRIVER_NAME_LIMIT))


def _validate_source(source: Object, path: Path, errs: list[FieldError]) -> None:
    inline, name = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    both = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if inline is None and name is None:
        errs.append(required(path, both))
    elif inline is not None and name is not None:
        errs.append(forbidden(path, both))
    elif name == "":
        errs.append(required(path.child("persistentVolumeName"), "must specify non empty persistentVolumeName"))
    elif inline is not None:
        errs += validate_volume_spec(path.child("inlineVolumeSpec"), inline, "", inline=True)


def _validate_attachment_status(status: Object, path: Path, errs: list[FieldError]) -> None:
    if _size(status.get("attachmentMetadata") or {}) > _SIZE_LIMIT:
        errs.append(too_long(path.child("attachmentMetadata"), "", _SIZE_LIMIT))
    for name in ("attachError", "detachError"):
        error = status.get(name)
        if error is None:
            continue
        if len(error.get("message", "").encode()) > _MESSAGE_LIMIT:
            errs.append(too_long(path.child(name, "message"), "", _MESSAGE_LIMIT))
        code = error.get("errorCode")
        if code is not None and code < 0:
            errs.append(invalid(path.child(name, "errorCode"), code, names.range_message(0, _INT32_MAX)))
