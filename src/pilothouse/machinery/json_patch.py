"""JSON patch (RFC 6902) with the habits of kube-apiserver's library (evanphx/json-patch v4).

Where it departs from the RFC, clients rely on it: ``replace`` and ``copy`` accept a missing object key, index -1 is the
last item, the first segment of a path is ignored whatever it is, a missing ``value`` is null, and values are equal only
if their numbers are written with the same type.

``apply`` never changes the given document or patch. Containers are copied when first written to and changed in place
from then on, so a patch costs the width of the paths it touches. Copies are shared, but their size is counted against
the same limit as in kube-apiserver.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from pilothouse.machinery import errors
from pilothouse.machinery.go_json import json_type
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.workers import ABANDONED, checkpoint

MAX_OPERATIONS: Final = 10_000
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024

_ESCAPE = re.compile(r"~[01]")
_INDEX = re.compile(r"[+-]?[0-9]+")
_MISSING: Final = "missing value"
_ABSENT: Final[Any] = object()

Operation = dict[str, Any]


class JsonPatchError(ValueError):
    """An operation that does not apply; its message is for logs, clients get a general one."""


def decode(patch: Any, limit: int = MAX_OPERATIONS) -> list[Operation]:
    """The operations of a decoded patch body; a ``StatusError`` if it is no list of objects, or too long."""
    if patch is None:
        return []
    if not isinstance(patch, list):
        raise errors.bad_request(f"json: cannot unmarshal {json_type(patch)} into Go value of type jsonpatch.Patch")
    for position, operation in enumerate(patch):
        if operation is not None and not isinstance(operation, dict):
            kind = json_type(operation)
            raise errors.bad_request(f"json: cannot unmarshal {kind} into Patch.{position} of type jsonpatch.Operation")
    if len(patch) > limit:
        raise errors.too_large(f"The allowed maximum operations in a JSON patch is {limit}, got {len(patch)}")
    return [operation or {} for operation in patch]


def apply(document: Any, operations: list[Operation], max_copied: int = MAX_COPIED_BYTES) -> Any:
    """The document after all operations; ``JsonPatchError`` if one does not apply."""
    application = _Application(document, max_copied)
    for operation in operations:
        if ABANDONED:
            checkpoint()
        application.run(operation)
    return application.root


class _Application:
    """A document while operations are applied to it, and which of its containers are ours to change."""

    def __init__(self, root: Any, max_copied: int) -> None:
        self.root = root
        self.max_copied = max_copied
        self.copied = 0
        self.own: dict[int, Any] = {}

    def run(self, operation: Operation) -> None:
        kind = operation.get("op")
        handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
        if handler is None:
            raise JsonPatchError(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")
        handler(self, operation)

    def add(self, operation: Operation) -> None:
        path, key = self._find("add", operation)
        self._wrap(f"error in add for path: '{path}'", _insert, self._writable(path), key, operation.get("value"))

    def remove(self, operation: Operation) -> None:
        path, key = self._find("remove", operation)
        self._wrap(f"error in remove for path: '{path}'", _delete, self._writable(path), key)

    def _find(self, kind: str, operation: Operation) -> tuple[str, str]:
        """The path of an operation and its last part, whose parent must be there."""
        path = _path_of(operation)
        if path is None:
            raise JsonPatchError(f"{kind} operation failed to decode path: {_MISSING}")
        parent, key = self._locate(path)
        if parent is None:
            raise JsonPatchError(f'{kind} operation does not apply: doc is missing path: "{path}": {_MISSING}')
        return path, key

    def replace(self, operation: Operation) -> None:
        path = _required(operation, "path", "replace operation failed to decode path")
        value = operation.get("value")
        if path == "":
            if not isinstance(value, (dict, list)):
                raise JsonPatchError("replace operation value must be object or array: %!w(<nil>)")
            self.root = value
            return
        parent, key = self._locate(path)
        if parent is None:
            raise JsonPatchError(f"replace operation does not apply: doc is missing path: {path}: {_MISSING}")
        if isinstance(parent, list):
            try:
                _get(parent, key)
            except JsonPatchError:
                message = f"replace operation does not apply: doc is missing key: {path}: {_MISSING}"
                raise JsonPatchError(message) from None
        target = self._writable(path)
        target[_index(key, len(target)) if isinstance(target, list) else key] = value

    def move(self, operation: Operation) -> None:
        source = _required(operation, "from", "move operation failed to decode from")
        parent, key = self._locate(source)
        if parent is None:
            raise JsonPatchError(f"move operation does not apply: doc is missing from path: {source}: {_MISSING}")
        value = self._wrap(f"error in move for path: '{key}'", _get, parent, key)
        self._wrap(f"error in move for path: '{key}'", _delete, self._writable(source), key)
        path = _required(operation, "path", "move operation failed to decode path")
        parent, key = self._locate(path)
        if parent is None:
            raise JsonPatchError(f"move operation does not apply: doc is missing destination path: {path}: {_MISSING}")
        self._wrap(f"error in move for path: '{path}'", _insert, self._writable(path), key, value)

    def copy(self, operation: Operation) -> None:
        source = _required(operation, "from", "copy operation failed to decode from")
        parent, key = self._locate(source)
        if parent is None:
            raise JsonPatchError(f"copy operation does not apply: doc is missing from path: {source}: {_MISSING}")
        value = self._wrap(f"error in copy for from: '{source}'", _get, parent, key)
        path = _path_of(operation)
        if path is None:
            raise JsonPatchError(f"copy operation failed to decode path: {_MISSING}")
        parent, key = self._locate(path)
        if parent is None:
            raise JsonPatchError(f"copy operation does not apply: doc is missing destination path: {path}: {_MISSING}")
        self._count(value)
        # What is copied will be reachable twice, and so must not be changed in place any more. It may be copied into
        # itself, too: what leads there is then changed in a copy, or it would hold itself for ever.
        self._disown(value)
        self._wrap("error while adding value during copy", _insert, self._writable(path), key, value)

    def test(self, operation: Operation) -> None:
        path = _required(operation, "path", "test operation failed to decode path")
        expected = operation.get("value")
        if path == "":
            found = self.root
        else:
            parent, key = self._locate(path)
            if parent is None:
                raise JsonPatchError(f"test operation does not apply: is missing path: {path}: {_MISSING}")
            found = self._wrap(f"error in test for path: '{path}'", _get, parent, key)
        if not _equal(found, expected):
            raise JsonPatchError(f"testing value {path} failed: test failed")

    def _count(self, value: Any) -> None:
        if value is None:
            return
        self.copied += _size(value)
        if 0 < self.max_copied < self.copied:
            raise JsonPatchError(
                f"Unable to complete the copy, the accumulated size increase of copy is {self.copied},"
                f" exceeding the limit {self.max_copied}"
            )

    def _locate(self, path: str) -> tuple[Any, str]:
        """The container that holds the path's last segment, None if there is none; and the segment."""
        segments = path.split("/")
        if len(segments) < 2:
            return None, ""
        container = self.root
        for segment in segments[1:-1]:
            try:
                container = _get(container, _unescape(segment))
            except JsonPatchError:
                return None, ""
            if not isinstance(container, (dict, list)):
                return None, ""
        return container, _unescape(segments[-1])

    def _writable(self, path: str) -> Any:
        """The same container, after everything on the way to it has become ours."""
        container = self.root = self._owned(self.root)
        for segment in path.split("/")[1:-1]:
            step: Any = _unescape(segment)
            if isinstance(container, list):
                step = _index(step, len(container))
            container[step] = self._owned(container[step])
            container = container[step]
        return container

    def _owned(self, container: Any) -> Any:
        if id(container) in self.own:
            return container
        fresh = container.copy()
        self.own[id(fresh)] = fresh
        return fresh

    def _disown(self, value: Any) -> None:
        """Have a value and all in it copied before they are changed. Takes no longer than counting its bytes."""
        pending = [value]
        while pending:
            item = pending.pop()
            if isinstance(item, (dict, list)):
                self.own.pop(id(item), None)
                pending.extend(item.values() if isinstance(item, dict) else item)

    def _wrap(self, context: str, action: Any, *arguments: Any) -> Any:
        try:
            return action(*arguments)
        except JsonPatchError as error:
            raise JsonPatchError(f"{context}: {error}") from None


_HANDLERS: Final = {
    "add": _Application.add,
    "remove": _Application.remove,
    "replace": _Application.replace,
    "move": _Application.move,
    "test": _Application.test,
    "copy": _Application.copy,
}


def _path_of(operation: Operation) -> str | None:
    path = operation.get("path")
    return path if isinstance(path, str) else None


def _required(operation: Operation, name: str, context: str) -> str:
    value = operation.get(name)
    if isinstance(value, str):
        return value
    if value is None:
        reason = f"operation{'' if name == 'path' else ','} missing {name} field: {_MISSING}"
    else:
        reason = f"json: cannot unmarshal {json_type(value)} into Go value of type string"
    raise JsonPatchError(f"{context}: {reason}")


def _unescape(segment: str) -> str:
    return _ESCAPE.sub(lambda match: "/" if match[0] == "~1" else "~", segment) if "~" in segment else segment


def _parse_index(key: str) -> int:
    if not _INDEX.fullmatch(key):
        raise JsonPatchError(f"strconv.Atoi: parsing {quote(key)}: invalid syntax")
    if len(key.lstrip("+-0")) > 18:
        raise JsonPatchError(f"strconv.Atoi: parsing {quote(key)}: value out of range")
    return int(key)


def _index(key: str, size: int) -> int:
    index = _parse_index(key)
    if not -size <= index < size:
        raise JsonPatchError(f"Unable to access invalid index: {index}: invalid index referenced")
    return index + size if index < 0 else index


def _get(container: Any, key: str) -> Any:
    """A member or item; a missing member is null."""
    return container[_index(key, len(container))] if isinstance(container, list) else container.get(key)


def _insert(container: Any, key: str, value: Any) -> None:
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        try:
            index = _parse_index(key)
        except JsonPatchError as error:
            raise JsonPatchError(f"value was not a proper array index: '{key}': {error}") from None
        container.insert(_index(str(index), len(container) + 1), value)


def _delete(container: Any, key: str) -> None:
    if isinstance(container, list):
        del container[_index(key, len(container))]
    elif container.pop(key, _ABSENT) is _ABSENT:
        raise JsonPatchError(f"Unable to remove nonexistent key: {key}: {_MISSING}")


def _size(value: Any) -> int:
    """Bytes of the value as JSON; of values too deep for the encoder, about as many."""
    try:
        return len(orjson.dumps(value))
    except orjson.JSONEncodeError:
        pass
    size, pending = 0, [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            size += 2 + sum(len(key) + 4 for key in item)
            pending.extend(item.values())
        elif isinstance(item, list):
            size += 2 + len(item)
            pending.extend(item)
        else:
            size += len(str(item)) + 2
    return size


def _equal(left: Any, right: Any) -> bool:
    """Equality of JSON values in which 1, 1.0 and true are three different ones."""
    pending = [(left, right)]
    while pending:
        a, b = pending.pop()
        if type(a) is not type(b):
            return False
        if isinstance(a, dict):
            if a.keys() != b.keys():
                return False
            pending.extend((a[key], b[key]) for key in a)
        elif isinstance(a, list):
            if len(a) != len(b):
                return False
            pending.extend(zip(a, b, strict=True))
        elif a != b:
            return False
    return True
