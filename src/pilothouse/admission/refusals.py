"""The usual refusal of a plug-in: 403, naming the object as far as it has a name."""

from __future__ import annotations

from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery import errors
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.names import check_path_segment_name


def forbidden(attributes: Attributes, why: str) -> errors.StatusError:
    """Refuse a request for a reason."""
    return errors.forbidden(attributes.resource.group_resource, name_of(attributes), why)


def unnameable(name: str) -> str:
    """Why nothing can be asked for by this name; empty where something can."""
    if not name:
        return "resource name may not be empty"
    errs = check_path_segment_name(name)
    return f"invalid resource name {quote(name)}: [{' '.join(errs)}]" if errs else ""


def name_of(attributes: Attributes) -> str:
    """The name a refusal shows; names are not generated yet when mutating plug-ins run."""
    if attributes.name:
        return attributes.name
    if attributes.object is None:
        return "Unknown"
    metadata = attributes.object.get("metadata")
    if metadata is None:
        return "Unknown/errorGettingName"
    return metadata.get("name") or metadata.get("generateName") or "Unknown"
