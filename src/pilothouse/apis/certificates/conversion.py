"""Pod certificate requests between v1 and v1beta1, the hub: that version alone has the deprecated fields for a key."""

from __future__ import annotations

from typing import Final

from pilothouse.machinery.objects import Object

_DEPRECATED: Final = ("pkixPublicKey", "proofOfPossession")


def request_to_hub(obj: Object) -> Object:
    """A request of v1, whose key can only stand in its stub."""
    return {**obj, "spec": {**obj["spec"], **dict.fromkeys(_DEPRECATED)}}


def request_from_hub(obj: Object) -> Object:
    """A request as v1 shows it: without its key where that is not in a stub."""
    return {**obj, "spec": {key: value for key, value in obj["spec"].items() if key not in _DEPRECATED}}


CONVERTERS: Final = {("v1", "podcertificaterequests"): (request_to_hub, request_from_hub)}
