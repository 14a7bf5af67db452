"""Validation of object metadata, the same for every kind, in kube-apiserver's order and words."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.object_names import NameValidator
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, invalid, not_supported, required, too_long
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupVersionKind, parse_group_version

Metadata = dict[str, Any]
IMMUTABLE = "field is immutable"
ANNOTATIONS_LIMIT = 256 * 1024
MANAGER_LIMIT = 128
SUBRESOURCE_LIMIT = 256
ORPHAN_DEPENDENTS = "orphan"
DELETE_DEPENDENTS = "foregroundDeletion"
_OPERATIONS = ("Apply", "Update")
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
_METADATA = Path("metadata")
_MOST_PREFIXES: Final = 1024
_LONGEST_PREFIX: Final = 64
_sound_prefixes: set[tuple[NameValidator, str]] = set()
"""Beginnings of generated names that were found right lately: controllers use one for many objects."""
_IMMUTABLE: Final = {
    "name": "",
    "namespace": "",
    "uid": "",
    "creationTimestamp": None,
    "deletionTimestamp": None,
    "deletionGracePeriodSeconds": None,
}
"""Each with what stands for a field that is not there."""


def validate_metadata(
    metadata: Metadata, *, namespaced: bool, validate_name: NameValidator, path: Path = _METADATA
) -> list[FieldError]:
    """Errors of a new object's metadata."""
    errs = validate_names(metadata, validate_name, path)
    if not metadata.get("name"):
        errs.append(required(path.child("name"), "name or generateName is required"))
    namespace = metadata.get("namespace")
    if not namespaced:
        if namespace:
            errs.append(forbidden(path.child("namespace"), "not allowed on this type"))
    elif not namespace:
        errs.append(required(path.child("namespace"), ""))
    else:
        for message in names.check_dns1123_label(namespace):
            errs.append(invalid(path.child("namespace"), namespace, message))
    _validate_generation(metadata, path, errs)
    _validate_maps_and_owners(metadata, path, errs)
    finalizers = metadata.get("finalizers")
    if finalizers:
        validate_finalizers(finalizers, path.child("finalizers"), errs)
    _validate_managed_fields(metadata, path, errs)
    return errs


def validate_prefix(metadata: Metadata, validate_name: NameValidator, path: Path = _METADATA) -> list[FieldError]:
    """Errors of the beginning that a generated name was to have."""
    prefix = metadata.get("generateName")
    if not prefix or (validate_name, prefix) in _sound_prefixes:
        return []
    messages = validate_name(prefix, True)
    if not messages and len(prefix) <= _LONGEST_PREFIX:
        if len(_sound_prefixes) >= _MOST_PREFIXES:
            _sound_prefixes.clear()
        _sound_prefixes.add((validate_name, prefix))
    return [invalid(path.child("generateName"), prefix, why) for why in messages]


def validate_names(metadata: Metadata, validate_name: NameValidator, path: Path = _METADATA) -> list[FieldError]:
    """Errors of the names that are given."""
    errs, name = validate_prefix(metadata, validate_name, path), metadata.get("name")
    if name:
        for message in validate_name(name, False):
            errs.append(invalid(path.child("name"), name, message))
    return errs


def validate_metadata_update(
    metadata: Metadata, old: Metadata, path: Path = _METADATA, *, sound: bool = False
) -> list[FieldError]:
    """Errors of changed metadata against what was stored. What was found ``sound`` by itself is not looked at again."""
    errs: list[FieldError] = []
    if old.get("deletionTimestamp"):
        extra = sorted(set(metadata.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if extra:
            listed = ", ".join(map(quote, extra))
            why = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{listed}}}"
            )
            errs.append(forbidden(path.child("finalizers"), why))
    version = metadata.get("resourceVersion", "")
    if not version:
        errs.append(invalid(path.child("resourceVersion"), version, "must be specified for an update"))
    if not sound:
        _validate_generation(metadata, path, errs)
    if metadata.get("generation", 0) < old.get("generation", 0):
        errs.append(invalid(path.child("generation"), metadata.get("generation", 0), "must not be decremented"))
    if list(map(metadata.get, _IMMUTABLE)) != list(map(old.get, _IMMUTABLE)):
        for key, empty in _IMMUTABLE.items():
            if metadata.get(key, empty) != old.get(key, empty):
                errs.append(invalid(path.child(key), metadata.get(key, empty), IMMUTABLE))
    if not sound:
        _validate_maps_and_owners(metadata, path, errs)
        _validate_managed_fields(metadata, path, errs)
    return errs


def _validate_generation(metadata: Metadata, path: Path, errs: list[FieldError]) -> None:
    generation = metadata.get("generation", 0)
    if generation < 0:
        errs.append(invalid(path.child("generation"), generation, "must be greater than or equal to 0"))


def _validate_maps_and_owners(metadata: Metadata, path: Path, errs: list[FieldError]) -> None:
    labels = metadata.get("labels")
    if labels and not names.are_known_labels(labels):
        validate_labels(labels, path.child("labels"), errs)
    annotations = metadata.get("annotations")
    if annotations:
        validate_annotations(annotations, path.child("annotations"), errs)
    owners = metadata.get("ownerReferences")
    if owners:
        validate_owners(owners, path.child("ownerReferences"), errs)


def validate_labels(labels: dict[str, str], path: Path, errs: list[FieldError]) -> None:
    """Keys are qualified names, values label values."""
    for key, value in labels.items():
        if messages := names.check_label_key(key):
            errs += (invalid(path, key, message) for message in messages)
        if messages := names.check_label_value(value):
            errs += (invalid(path, value, message) for message in messages)


def validate_annotations(annotations: dict[str, str], path: Path, errs: list[FieldError]) -> None:
    """Keys are qualified names whatever their case; all together stay under 256 KiB."""
    size = 0
    for key, value in annotations.items():
        if messages := names.check_label_key(key.lower()):
            errs += (invalid(path, key, message) for message in messages)
        size += len(key) + len(value)
    # Characters are at most four bytes each: only a suspiciously long map is measured exactly.
    if size > ANNOTATIONS_LIMIT // 4 and _bytes(annotations) > ANNOTATIONS_LIMIT:
        errs.append(too_long(path, "", ANNOTATIONS_LIMIT))


def _bytes(annotations: dict[str, str]) -> int:
    return sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())


def validate_owners(owners: list[dict[str, Any]], path: Path, errs: list[FieldError]) -> None:
    """Every reference is complete, at most one is the controller, and events own nothing."""
    controller = ""
    shown: list[dict[str, Any]] = []
    for position, owner in enumerate(owners):
        _validate_owner(owner, path.index(position), errs)
        if owner.get("controller"):
            this = f"{owner.get('kind', '')}/{owner.get('name', '')}"
            if controller:
                why = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {controller} and {this}'
                )
                shown = shown or [_shown_owner(each) for each in owners]
                errs.append(invalid(path, shown, why))
            else:
                controller = this


def _validate_owner(owner: dict[str, Any], path: Path, errs: list[FieldError]) -> None:
    version = owner.get("apiVersion", "")
    try:
        gv = parse_group_version(version)
    except ValueError:
        gv = None
    if not version:
        errs.append(required(path.child("apiVersion"), "must not be empty"))
    elif gv is None or not gv.version:
        errs.append(invalid(path.child("apiVersion"), version, "must be <group>/<version> or <version>"))
    errs += (required(path.child(key), "must not be empty") for key in ("kind", "name", "uid") if not owner.get(key))
    if gv is not None and (version, owner.get("kind")) == ("v1", "Event"):
        gvk = GroupVersionKind(gv.group, gv.version, "Event")
        errs.append(invalid(path, _shown_owner(owner), f"{gvk} is disallowed from being an owner"))


def _shown_owner(owner: dict[str, Any]) -> dict[str, Any]:
    """A reference with its fields in kube-apiserver's order."""
    return {key: owner[key] for key in _OWNER_FIELDS if key in owner}


def validate_finalizers(finalizers: Any, path: Path, errs: list[FieldError]) -> None:
    """Names are qualified, and the two cascading finalizers exclude each other."""
    for finalizer in finalizers:
        errs += (invalid(path, finalizer, message) for message in names.check_label_key(finalizer))
    if ORPHAN_DEPENDENTS in finalizers and DELETE_DEPENDENTS in finalizers:
        why = f"finalizer {ORPHAN_DEPENDENTS} and {DELETE_DEPENDENTS} cannot be both set"
        errs.append(invalid(path, list(finalizers), why))


def validate_manager(manager: str, path: Path, errs: list[FieldError]) -> None:
    """Names of field managers are short and printable; positions count bytes."""
    if len(manager.encode()) > MANAGER_LIMIT:
        errs.append(too_long(path, "", MANAGER_LIMIT))
    if manager.isprintable():
        return
    position = 0
    for char in manager:
        if not char.isprintable():
            errs.append(invalid(path, manager, f"invalid character U+{ord(char):04X} (at position {position})"))
        position += len(char.encode())


def _validate_managed_fields(metadata: Metadata, path: Path, errs: list[FieldError]) -> None:
    entries = metadata.get("managedFields")
    if not entries:
        return
    for position, entry in enumerate(entries):
        if not _is_plain(entry):
            _validate_entry(entry, path.child("managedFields").index(position), errs)


def _is_plain(entry: dict[str, Any]) -> bool:
    """Whether an entry is right for sure, as those are that this server wrote."""
    manager = entry.get("manager", "")
    return (
        entry.get("operation") in _OPERATIONS
        and entry.get("fieldsType") == "FieldsV1"
        and len(manager) <= MANAGER_LIMIT
        and manager.isascii()
        and manager.isprintable()
        and len(entry.get("subresource", "")) <= SUBRESOURCE_LIMIT // 4
    )


def _validate_entry(entry: dict[str, Any], path: Path, errs: list[FieldError]) -> None:
    operation = entry.get("operation", "")
    if not operation:
        errs.append(required(path.child("operation"), "must not be empty"))
    elif operation not in _OPERATIONS:
        errs.append(not_supported(path.child("operation"), operation, _OPERATIONS))
    if entry.get("fieldsType") and entry["fieldsType"] != "FieldsV1":
        errs.append(invalid(path.child("fieldsType"), entry["fieldsType"], "must be `FieldsV1`"))
    validate_manager(entry.get("manager", ""), path.child("manager"), errs)
    if len(entry.get("subresource", "").encode()) > SUBRESOURCE_LIMIT:
        errs.append(too_long(path.child("subresource"), "", SUBRESOURCE_LIMIT))
