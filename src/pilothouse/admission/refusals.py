"""The usual refusal of a plug-in: 403, naming the object as far as it has a name."""

from __future__ import annotations

from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery import errors


def forbidden(attributes: Attributes, why: str) -> errors.StatusError:
    """Refuse a request for a reason."""
    return errors.forbidden(attributes.resource.group_resource, name_of(attributes), why)


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
