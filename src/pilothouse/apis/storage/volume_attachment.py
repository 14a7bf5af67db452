"""Attachments of volumes to nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.persistent_volume.validation import validate_volume_spec
from pilothouse.apis.error_lists import ErrorList
from pilothouse.apis.status import ResettingStatusStrategy, StatusKeeper
from pilothouse.apis.storage.columns import doc, of_spec
from pilothouse.apis.storage.formats import size_of, validate_driver_name
from pilothouse.apis.strategy import Column, Context, Strategy
from pilothouse.apis.strategy_rules import DeletionRules, MetadataRules, UpdateRules
from pilothouse.apis.validation import well_formed
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import (
    FieldError,
    Path,
    forbidden,
    invalid,
    required,
    too_long,
    too_long_characters,
)
from pilothouse.machinery.objects import Object

_SIZE_LIMIT = 256 * 1024
_MESSAGE_LIMIT = 1024
_DRIVER_NAME_LIMIT = 63
_INT32_MAX = 2**31 - 1
ATTACHMENT_COLUMNS = (
    NAME,
    Column(
        "Attacher",
        "string",
        of_spec("attacher", ""),
        format="name",
        description=doc("VolumeAttachmentSpec", "attacher"),
    ),
    Column(
        "PV",
        "string",
        lambda o: (o["spec"].get("source") or {}).get("persistentVolumeName", ""),
        description=doc("VolumeAttachmentSource", "persistentVolumeName"),
    ),
    Column("Node", "string", of_spec("nodeName", ""), description=doc("VolumeAttachmentSpec", "nodeName")),
    Column(
        "Attached",
        "boolean",
        lambda o: (o.get("status") or {}).get("attached", False),
        description=doc("VolumeAttachmentStatus", "attached"),
    ),
    AGE,
)


def validate_attachment(obj: Object, old: Object | None = None, *, attacher: bool = True) -> list[FieldError]:
    """Errors of a volume attachment: the spec never changes. The ``attacher`` is not judged everywhere."""
    errs = ErrorList()
    spec, path = obj["spec"], Path("spec")
    source, driver = spec.get("source") or {}, spec.get("attacher", "")
    if old is not None and attacher:
        validate_driver_name(driver, path.child("attacher"), errs.errors)
    _validate_source(source, path.child("source"), errs.errors)
    well_formed(spec.get("nodeName", ""), names.check_dns1123_subdomain, path, "nodeName", errs.errors)
    _validate_attachment_status(obj.get("status") or {}, Path("status"), errs.errors)
    volume = source.get("persistentVolumeName")
    if volume is not None:
        where = Path("spec.source.persistentVolumeName")
        errs.errors += (invalid(where, volume, m) for m in names.check_dns1123_subdomain(volume))
    if old is None:
        if attacher or not driver:
            _declare_attacher(driver, path.child("attacher"), errs.declared)
    else:
        errs.keep_declared(path, spec, old["spec"])
    return errs.listed()


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
    if size_of(status.get("attachmentMetadata") or {}) > _SIZE_LIMIT:
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


class VolumeAttachmentStatusStrategy(ResettingStatusStrategy):
    """What the attacher reports."""

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    update_rules = UpdateRules(allow_unconditional=False)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_attachment(obj, old)


class VolumeAttachmentStrategy(StatusKeeper):
    """Volume attachments."""

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    deletion_rules = DeletionRules(returns_deleted=True)
    type_name = "storage.v1.VolumeAttachment"
    update_rules = UpdateRules(allow_unconditional=False)
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": VolumeAttachmentStatusStrategy}
    columns = ATTACHMENT_COLUMNS
    judges_attacher: ClassVar[bool] = True

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_attachment(obj, attacher=self.judges_attacher)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_attachment(obj, old, attacher=self.judges_attacher)
