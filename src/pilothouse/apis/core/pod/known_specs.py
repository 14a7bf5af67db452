"""Specs that were found to be in order lately, so that the pods of one template are not judged one by one.

Workloads make pods by the thousand from one template. Their specs are the same but for the volume of the service
account's token, whose name admission draws: with that name blanked out, equal bytes mean an equal verdict. Only specs
in which nothing was found are remembered, and only of pods whose metadata has no say in it.
"""

from __future__ import annotations

import re
from typing import Final

import orjson

from pilothouse.machinery.names import TOKEN_VOLUME_PREFIX
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.emptied import Emptied

_MOST: Final = 256
_LARGEST: Final = 16 * 1024
# Whatever letters and digits stand at its end, a name of this form is as good as another. JSON has no zero bytes.
_DRAWN_NAME: Final = re.compile(TOKEN_VOLUME_PREFIX + "[a-z0-9]{5}").fullmatch
_BLANK: Final = b"\0"


class KnownSpecs:
    """Fingerprints of specs in which nothing was found, the latest of them."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, None] = {}

    def __contains__(self, fingerprint: bytes) -> bool:
        return fingerprint in self._known

    def add(self, fingerprint: bytes) -> None:
        """Remember a spec; the one that was remembered first makes room for it."""
        if len(self._known) >= _MOST:
            del self._known[next(iter(self._known))]
        self._known[fingerprint] = None


def fingerprint(pod: Object) -> bytes | None:
    """What is equal only for specs that are equally sound; None where the pod's metadata matters, or its size is rare.

    Annotations name profiles of containers, claims get names made of the pod's, and what a client gave as empty is not
    in the bytes.
    """
    spec = pod["spec"]
    if "annotations" in pod["metadata"] or "resourceClaims" in spec or isinstance(pod, Emptied):
        return None
    try:
        text = orjson.dumps(spec)
    except orjson.JSONEncodeError:  # it has what JSON has not, and validation says so
        return None
    if len(text) > _LARGEST:
        return None
    volumes = spec.get("volumes")
    if volumes:
        if b'"ephemeral":' in text:
            return None
        name = volumes[-1].get("name", "")
        if _DRAWN_NAME(name) is not None:
            return text.replace(name.encode(), _BLANK)
    return text
