"""Errors about one field of an object, worded as kube-apiserver words them.

Validation appends ``FieldError`` values to a list and never raises: one answer names every error. A ``Path`` is a
cheap linked list that becomes text only when an error is printed, so a valid object pays almost nothing for it.

    errs: list[FieldError] = []
    if not name:
        errs.append(required(path.child("name"), ""))
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from sys import getrefcount
from typing import Any, Final

import orjson

from pilothouse.machinery.go_quote import format_float, quote
from pilothouse.machinery.workers import ABANDONED, PATIENCE, checkpoint

NOT_FOUND: Final = "FieldValueNotFound"
REQUIRED: Final = "FieldValueRequired"
DUPLICATE: Final = "FieldValueDuplicate"
INVALID: Final = "FieldValueInvalid"
NOT_SUPPORTED: Final = "FieldValueNotSupported"
FORBIDDEN: Final = "FieldValueForbidden"
TOO_LONG: Final = "FieldValueTooLong"
TOO_MANY: Final = "FieldValueTooMany"
INTERNAL: Final = "InternalError"
TYPE_INVALID: Final = "FieldValueTypeInvalid"

_TITLES: Final = {
    NOT_FOUND: "Not found",
    REQUIRED: "Required value",
    DUPLICATE: "Duplicate value",
    INVALID: "Invalid value",
    NOT_SUPPORTED: "Unsupported value",
    FORBIDDEN: "Forbidden",
    TOO_LONG: "Too long",
    TOO_MANY: "Too many",
    INTERNAL: "Internal error",
    TYPE_INVALID: "Invalid value",
}
_ESCAPED: Final = re.compile("[<>&\u2028\u2029]")
"""What Go escapes in JSON, so that it may stand in a web page."""
_EXPONENT_FROM: Final = 1e21
_TEXT_LIMIT: Final = 1 << 20
_COST: Final = 25
"""Of an error and its text, in units of what expressions cost: some microseconds."""
_WITHOUT_VALUE: Final = frozenset({REQUIRED, FORBIDDEN, TOO_LONG, INTERNAL})


class _OmitValue:
    """Marks an error that never shows the value it refused."""

    def __repr__(self) -> str:
        return "OMIT_VALUE"


OMIT_VALUE: Final = _OmitValue()


class Path:
    """Where a field is: ``spec.containers[0].image`` or ``metadata.labels[app]``."""

    __slots__ = ("_parent", "_step")

    def __init__(self, name: str = "", *more: str) -> None:
        self._parent: Path | None = None
        self._step = ".".join((name, *more))

    def child(self, *names: str) -> Path:
        """The path of a field below this one."""
        return self._down("." + ".".join(names))

    def index(self, position: int) -> Path:
        """The path of a list item."""
        if ABANDONED:
            checkpoint()
        return self._down(f"[{position}]")

    def key(self, key: str) -> Path:
        """The path of a map's value, or of a list item named by its key."""
        return self._down(f"[{key}]")

    def _down(self, step: str) -> Path:
        path = Path.__new__(Path)
        path._parent = self
        path._step = step
        return path

    def __str__(self) -> str:
        steps: list[str] = []
        path: Path | None = self
        while path is not None:
            steps.append(path._step)
            path = path._parent
        # A child without a name shows as an index without a number.
        return "".join("[]" if step == "." else step for step in reversed(steps)).lstrip(".")

    def __repr__(self) -> str:
        return f"Path({str(self)!r})"


WHOLE: Final = Path("[]")
"""Where errors of an object as a whole are, for rules whose path has one step without a name."""


class Named(str):
    """A text that has a type of its own in kube-apiserver, and so shows as JSON: ``\\u003c``, not ``<``."""

    __slots__ = ()


def as_json(value: Any) -> Any:
    """A value that is behind a pointer in kube-apiserver, or that may also be a number: a text shows as JSON, too."""
    return Named(value) if isinstance(value, str) else value


class FieldError:
    """One error at one field. ``value`` is what was refused, shown as Go would show it."""

    __slots__ = ("detail", "path", "type", "value")

    def __init__(self, type: str, path: Path | str | None, value: Any, detail: str) -> None:
        PATIENCE.spend(_COST)
        self.type = type
        self.path = path
        self.value = value
        self.detail = detail
        if (made := _MADE.errors) is not None:
            made.append(self)
            if len(made) >= MOST_MADE:
                _look_through(made)

    @property
    def field(self) -> str:
        return "<nil>" if self.path is None else str(self.path)

    @property
    def body(self) -> str:
        """The message without the field's name: the ``message`` of a Status cause."""
        title = _TITLES[self.type]
        if self.type not in _WITHOUT_VALUE and self.value is not OMIT_VALUE:
            title = f"{title}: {show_value(self.value)}"
        return f"{title}: {self.detail}" if self.detail else title

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"

    def __repr__(self) -> str:
        return f"FieldError({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldError) and (self.type, str(self)) == (other.type, str(other))

    def __hash__(self) -> int:
        return hash((self.type, str(self)))


def show_value(value: Any) -> str:
    """Text of a refused value: scalars as Go prints them, everything else as JSON."""
    if isinstance(value, str) and not isinstance(value, Named):
        return quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format_float(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", orjson.dumps(_with_go_numbers(value)).decode())


def _with_go_numbers(value: Any) -> Any:
    """A JSON value whose floats are written as Go does: whole ones without a fraction, exponents with a sign."""
    if isinstance(value, dict):
        return {key: _with_go_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_go_numbers(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return orjson.Fragment(str(int(value)) if abs(value) < _EXPONENT_FROM else repr(value))
    return value


def invalid(path: Path | None, value: Any, detail: str) -> FieldError:
    """A malformed value."""
    return FieldError(INVALID, path, value, detail)


def type_invalid(path: Path | None, value: Any, detail: str) -> FieldError:
    """A value of the wrong type."""
    return FieldError(TYPE_INVALID, path, value, detail)


def required(path: Path | None, detail: str = "") -> FieldError:
    """A value that is missing or empty."""
    return FieldError(REQUIRED, path, "", detail)


def forbidden(path: Path | None, detail: str) -> FieldError:
    """A value that is well-formed but not allowed here."""
    return FieldError(FORBIDDEN, path, "", detail)


def duplicate(path: Path | None, value: Any) -> FieldError:
    """A second occurrence of what must be unique."""
    return FieldError(DUPLICATE, path, value, "")


def not_found(path: Path | None, value: Any) -> FieldError:
    """A reference to something that does not exist."""
    return FieldError(NOT_FOUND, path, value, "")


def not_supported(path: Path | None, value: Any, supported: Iterable[str], *, plain: bool = False) -> FieldError:
    """A value outside an enumeration; the supported ones are listed in the given order.

    Enumerations are named types; ``plain`` is for the few fields that take any text as far as their type goes.
    """
    listed = ", ".join(quote(v) for v in supported)
    if isinstance(value, str) and not plain:
        value = Named(value)
    return FieldError(NOT_SUPPORTED, path, value, f"supported values: {listed}" if listed else "")


def too_long(path: Path | None, value: Any, limit: int) -> FieldError:
    """A string over its length limit (counted in bytes)."""
    unit = "byte" if limit == 1 else "bytes"
    detail = f"may not be more than {limit} {unit}" if limit >= 0 else "value is too long"
    return FieldError(TOO_LONG, path, OMIT_VALUE, detail)


def too_long_characters(path: Path | None, value: Any, limit: int) -> FieldError:
    """A string over its length limit (counted in characters)."""
    unit = "character" if limit == 1 else "characters"
    detail = f"may not be more than {limit} {unit}" if limit >= 0 else "value is too long"
    return FieldError(TOO_LONG, path, OMIT_VALUE, detail)


def too_many(path: Path | None, actual: int, limit: int) -> FieldError:
    """A list with more items than allowed."""
    if limit < 0:
        return FieldError(TOO_MANY, path, actual if actual >= 0 else OMIT_VALUE, "has too many items")
    unit = "item" if limit == 1 else "items"
    value: Any = actual if actual >= 0 else OMIT_VALUE
    return FieldError(TOO_MANY, path, value, f"must have at most {limit} {unit}")


def internal(path: Path | None, detail: str) -> FieldError:
    """The server itself failed while checking this field."""
    return FieldError(INTERNAL, path, None, detail)


def listed(errors: Iterable[FieldError], *, repeated: bool = False) -> list[FieldError]:
    """The errors that an answer names: each once unless ``repeated``, and none beyond a length that nobody reads.

    Errors may show the whole list that one of its items makes wrong: without a limit their text grows with its square.
    """
    found: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    left = _TEXT_LIMIT
    for error in errors:
        text = str(error)
        if repeated or (error.type, text) not in seen:
            seen.add((error.type, text))
            found.append(error)
        left -= len(text)
        if left < 0:
            break
    return found


MOST_MADE: Final = 30_000
"""Of so many errors the text is longer than anybody is told: each has 35 letters at least."""


class _Made(threading.local):
    """The errors that a thread has made since somebody wanted to know."""

    errors: list[FieldError] | None = None


_MADE: Final = _Made()


class EnoughErrors(BaseException):
    """Ends a validation that goes on and on about the same object; no ``except Exception`` holds it up."""

    def __init__(self, errors: list[FieldError]) -> None:
        super().__init__()
        self.errors = errors


def bounded(validate: Callable[[], list[FieldError]]) -> list[FieldError]:
    """The errors that ``validate`` returns; where they would be very many, the first that it made.

    An empty item of three bytes may be three errors of half a kilobyte each, and a million of them fit into a request.
    """
    outer, _MADE.errors = _MADE.errors, []
    try:
        return validate()
    except EnoughErrors as enough:
        return enough.errors
    finally:
        _MADE.errors = outer


def _look_through(made: list[FieldError]) -> None:
    """Raise ``EnoughErrors`` if most of them are kept by somebody else too; what was only tried is forgotten."""
    kept = [error for error in made if getrefcount(error) > _KNOWN_HERE]
    if len(kept) > MOST_MADE - MOST_MADE // 8:
        raise EnoughErrors(kept)
    made[:] = kept


def _count_known_here() -> int:
    made = [FieldError(REQUIRED, None, None, "")]
    (count,) = [getrefcount(error) for error in made]
    return count


_KNOWN_HERE: Final = _count_known_here()
"""What ``getrefcount`` gives of an error that only the list has which is gone through."""


def aggregate(messages: Iterable[str]) -> str:
    """Several messages as one, without repetition: ``[a, b]``, or just ``a``."""
    unique = list(dict.fromkeys(messages))
    return unique[0] if len(unique) == 1 else "[" + ", ".join(unique) + "]"
