"""Priority levels through the betas of flowcontrol.apiserver.k8s.io.

The first two call the shares ``assuredConcurrencyShares``. None can say that there are no shares: zero means the
default, unless (in v1beta3) an annotation says that it is meant.
"""

from __future__ import annotations

from typing import Final

from pilothouse.apis.legacy.older import Older
from pilothouse.machinery.objects import Object

_SHARES: Final = "nominalConcurrencyShares"
_ASSURED: Final = "assuredConcurrencyShares"
_MEANT: Final = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
_DEFAULT: Final = 30


def from_assured(obj: Object) -> Object:
    """As v1 has it."""
    return _renamed(obj, _ASSURED, _SHARES)


def to_assured(obj: Object) -> Object:
    """As v1beta1 and v1beta2 have it."""
    return _renamed(obj, _SHARES, _ASSURED)


def _renamed(obj: Object, old: str, new: str) -> Object:
    limited = obj["spec"].get("limited")
    if limited is None:
        return obj
    made = {new if name == old else name: value for name, value in limited.items()}
    return {**obj, "spec": {**obj["spec"], "limited": made}}


def default_assured(obj: Object) -> None:
    limited = obj["spec"].get("limited")
    if limited is not None and not limited.get(_ASSURED):
        limited[_ASSURED] = _DEFAULT


def default_nominal(obj: Object) -> None:
    limited = obj["spec"].get("limited")
    if limited is not None and not limited.get(_SHARES) and _MEANT not in (obj["metadata"].get("annotations") or ()):
        limited[_SHARES] = _DEFAULT


def from_v1beta3(obj: Object) -> Object:
    """As v1 has it, where zero is zero."""
    metadata = dict(obj["metadata"])
    annotations = {name: text for name, text in (metadata.pop("annotations", None) or {}).items() if name != _MEANT}
    return {**obj, "metadata": {**metadata, "annotations": annotations} if annotations else metadata}


def to_v1beta3(obj: Object) -> Object:
    """As v1beta3 has it."""
    limited = obj["spec"].get("limited")
    if limited is None or limited.get(_SHARES):
        return obj
    annotations = {**(obj["metadata"].get("annotations") or {}), _MEANT: ""}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


OLDER: dict[tuple[str, str], Older] = {
    ("v1beta1", "prioritylevelconfigurations"): Older(from_assured, to_assured, default_assured),
    ("v1beta2", "prioritylevelconfigurations"): Older(from_assured, to_assured, default_assured),
    ("v1beta3", "prioritylevelconfigurations"): Older(from_v1beta3, to_v1beta3, default_nominal),
}
