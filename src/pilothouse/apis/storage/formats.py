"""Names and keys that several storage kinds hold."""

from __future__ import annotations

from pilothouse.machinery import names
from pilothouse.machinery.field_errors import FieldError, Path, invalid, required, too_long

ROOT = Path()
_PARAMETERS_LIMIT = 512
_SIZE_LIMIT = 256 * 1024
_DRIVER_NAME_LIMIT = 63


def well_formed_key(text: str, path: Path, errs: list[FieldError]) -> None:
    """A qualified name; the path is the text's own."""
    errs += (invalid(path, text, message) for message in names.check_label_key(text))


def validate_parameters(parameters: dict[str, str], errs: list[FieldError]) -> None:
    """Parameters of a class: not too many, not too long, none without a name."""
    path = Path("parameters")
    if len(parameters) > _PARAMETERS_LIMIT:
        errs.append(too_long(path, "", _PARAMETERS_LIMIT))
        return
    if "" in parameters:
        errs.append(invalid(path, "", "field can not be empty."))
    if size_of(parameters) > _SIZE_LIMIT:
        errs.append(too_long(path, "", _SIZE_LIMIT))


def size_of(values: dict[str, str]) -> int:
    """How many bytes keys and values take."""
    return sum(len(key.encode()) + len(value.encode()) for key, value in values.items())


def validate_driver_name(name: str, path: Path, errs: list[FieldError]) -> None:
    """The name a CSI driver goes by."""
    if not name:
        errs.append(required(path))
        return
    if len(name.encode()) > _DRIVER_NAME_LIMIT:
        errs.append(too_long(path, "", _DRIVER_NAME_LIMIT))
    errs += (invalid(path, name, message) for message in names.check_dns1123_subdomain(name.lower()))
