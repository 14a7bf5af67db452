"""Kernel parameters of a pod: their names, and those that would reach the host's own namespaces."""

from __future__ import annotations

import re
from typing import Final

from pilothouse.machinery.field_errors import FieldError, Path, duplicate, invalid, required
from pilothouse.machinery.objects import Object

_SEGMENT: Final = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_PATTERN: Final = rf"^({_SEGMENT}[\./])*{_SEGMENT}$"
_MAX_NAME: Final = 253
_is_name = re.compile(_PATTERN[1:-1]).fullmatch
_IPC_NAMES: Final = frozenset(
    "kernel." + name
    for name in ["sem", "shmall", "shmmax", "shmmni", "shm_rmid_forced", "shm", "msgmax", "msgmnb", "msgmni", "msg"]
)
_BAD_NAME: Final = f"must have at most {_MAX_NAME} characters and match regex {_PATTERN}"


def validate_sysctls(
    sysctls: list[Object], spec: Object, path: Path, errs: list[FieldError], *, allow_host: bool
) -> None:
    """Names are well-formed and unique, and none changes the host. ``path`` is that of the list."""
    seen: set[str] = set()
    for position, sysctl in enumerate(sysctls):
        name = sysctl.get("name", "")
        where = path.index(position).child("name")
        if not name:
            errs.append(required(where, ""))
        elif len(name) > _MAX_NAME or not _is_name(name):
            errs.append(invalid(where, name, _BAD_NAME))
        elif name in seen:
            errs.append(duplicate(where, name))
        if not allow_host and (field := is_host_sysctl(name, spec)):
            errs.append(invalid(where, name, f"may not be specified when '{field}' is true"))
        seen.add(name)


def is_host_sysctl(name: str, spec: Object) -> str:
    """The field that makes this parameter the host's; empty where it is the pod's own."""
    namespace = _namespace_of(name)
    if namespace == "net":
        return "hostNetwork" if spec.get("hostNetwork") else ""
    return "hostIPC" if namespace == "ipc" and spec.get("hostIPC") else ""


def _namespace_of(name: str) -> str:
    name = _normalize(name).partition("*")[0]
    if name in _IPC_NAMES or name.startswith("fs.mqueue."):
        return "ipc"
    return "net" if name.startswith("net.") else ""


def _normalize(name: str) -> str:
    """With dots between its parts: where slashes come first, dots and slashes are exchanged."""
    first = min((at for at in (name.find("."), name.find("/")) if at >= 0), default=-1)
    if first < 0 or name[first] == ".":
        return name
    return name.translate(_EXCHANGE)


_EXCHANGE: Final = str.maketrans("./", "/.")
