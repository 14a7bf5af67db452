"""Strategic merge patch: a patch that knows the type of what it patches.

Objects merge, null deletes, lists are replaced unless their field has the strategy ``merge``: then items are matched by
the field's merge key, and lists of scalars are united. A patch may direct the merge:

    $patch: replace | delete                 of an object, or of an item in a merging list
    $retainKeys: [...]                       drop every other key of this object
    $deleteFromPrimitiveList/<field>: [...]  take values out of a list of scalars
    $setElementOrder/<field>: [...]          the order of a merging list

What a field's strategy is comes from a ``PatchSchema``. ``apply`` does not change the document. It uses the patch up:
directives that were followed are gone from it afterwards, as in kube-apiserver, which shows that rest in messages. The
result shares with both what it took over unchanged. New items are taken over as they are, nulls included.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Protocol

from pilothouse.machinery.go_quote import quote, show
from pilothouse.machinery.merge.element_order import (
    DIRECTIVE,
    StrategicMergeError,
    arrange,
    element_type,
    go_type,
    identity,
    item_key,
    no_merge_key,
    order_after_deletions,
    partition,
    wrong_type,
)
from pilothouse.machinery.objects import Object
from pilothouse.machinery.workers import ABANDONED, checkpoint

__all__ = ["UNTYPED", "FieldPatchInfo", "PatchSchema", "StrategicMergeError", "apply"]

_RETAIN_KEYS: Final = "$retainKeys"
_DELETE_PRIMITIVES: Final = "$deleteFromPrimitiveList"
_SET_ORDER: Final = "$setElementOrder"
_BAD_ORDER: Final = "invalid patch format of setElementOrder list"

_NONE: Final[Any] = object()


class PatchSchema(Protocol):
    """What merging has to know of a type."""

    @property
    def kind(self) -> str:
        """The kind as Go names it: ``struct``, ``map``, ``string`` …; only structs have fields to look up."""

    @property
    def name(self) -> str:
        """The type's name, for messages: ``PodSpec``."""

    def field(self, name: str) -> FieldPatchInfo | None:
        """The field with this JSON name, None if the struct has none."""


class FieldPatchInfo(NamedTuple):
    """How one field merges: its strategies, the merge key of its items, and the type of its value or items."""

    strategies: frozenset[str] = frozenset()
    merge_key: str = ""
    schema: PatchSchema | None = None
    is_list: bool = False


class _Untyped:
    """A type without fields: maps, and everything that is opaque."""

    kind = "map"
    name = ""

    def field(self, name: str) -> FieldPatchInfo | None:
        return None


UNTYPED: Final[PatchSchema] = _Untyped()


def apply(document: Object, patch: Object, schema: PatchSchema) -> Object:
    """The document after the patch; ``StrategicMergeError`` if the patch does not fit."""
    try:
        return _merge_objects(document, patch, schema)
    except RecursionError:
        raise StrategicMergeError("exceeded max depth", 422) from None


def _merge_objects(original: Object, patch: Object, schema: PatchSchema) -> Object:
    if ABANDONED:
        checkpoint()
    if DIRECTIVE in patch:
        return _obey(patch)
    original = original.copy()
    if _RETAIN_KEYS in patch:
        original = _retain(original, patch, patch.pop(_RETAIN_KEYS))
    for key in [key for key in patch if key.startswith(_SET_ORDER)]:
        _merge_in_order(original, patch, key, schema)
    for key, value in patch.items():
        _merge_field(original, key, value, schema)
    return original


def _obey(patch: Object) -> Object:
    directive = patch[DIRECTIVE]
    if directive == "replace":
        del patch[DIRECTIVE]
        return patch
    if directive == "delete":
        return {}
    raise _unknown_directive(directive, patch)


def _unknown_directive(directive: Any, patch: Object) -> StrategicMergeError:
    return StrategicMergeError(f"unknown patch type: {_as_text(directive)} in map: {show(patch)}")


def _as_text(value: Any) -> str:
    """A value as Go's %s prints it, which means every scalar inside to be a string."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_as_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(_as_text, value)) + "]"
    if value is None:
        return "%!s(<nil>)"
    return value if isinstance(value, str) else f"%!s({go_type(value)}={show(value)})"


def _retain(original: Object, patch: Object, keys: Any) -> Object:
    """kube-apiserver without the keys that are not listed; the patch may set only listed ones."""
    if not isinstance(keys, list):
        raise StrategicMergeError("invalid patch format of retainKeys", 400)
    listed = {key for key in keys if isinstance(key, str)}
    for key, value in patch.items():
        if value is None or key.startswith((_DELETE_PRIMITIVES, _SET_ORDER)):
            continue
        if key not in listed:
            raise StrategicMergeError("invalid patch format of retainKeys", 400)
    return {key: value for key, value in original.items() if key in listed}


def _merge_field(original: Object, key: str, value: Any, schema: PatchSchema) -> None:
    """Merge one entry of the patch into ``original``, which is ours to change."""
    deletes = key.startswith(_DELETE_PRIMITIVES)
    if deletes:
        key = _field_named(key, _DELETE_PRIMITIVES, "invalid patch format of primitive list") or key
    if value is None:
        original.pop(key, None)
        return
    current: Any = original.get(key)
    if type(current) is not type(value):
        if not deletes:
            _take_over(original, key, value)
    elif isinstance(value, dict):
        info = _look_up(schema, key)
        replaces = _strategy(info) == "replace"
        original[key] = value if replaces else _merge_objects(current, value, info.schema or UNTYPED)
    elif isinstance(value, list):
        info = _look_up_list(schema, key)
        if deletes or _strategy(info) == "merge":
            original[key] = _merge_lists(current or [], value, info.merge_key, info.schema or UNTYPED, deletes)
        else:
            original[key] = value
    else:
        original[key] = value


def _take_over(original: Object, key: str, value: Any) -> None:
    """Set a value that had no counterpart, without nulls and directives."""
    _discard_nulls(value)
    kept = _without_directives(value)
    if kept is _NONE:
        original.pop(key, None)
    else:
        original[key] = kept


def _field_named(key: str, prefix: str, problem: str) -> str:
    found, slash, name = key.partition("/")
    if not slash or found != prefix:
        raise StrategicMergeError(problem, 400)
    return name


def _look_up(schema: PatchSchema, key: str) -> FieldPatchInfo:
    if schema.kind != "struct":
        problem = f"merging an object in json but data type is not struct, instead is: {schema.kind}"
        raise StrategicMergeError(problem)
    info = schema.field(key)
    if info is None:
        raise StrategicMergeError(f"unable to find api field in struct {schema.name} for the json field {quote(key)}")
    return info


def _look_up_list(schema: PatchSchema, key: str) -> FieldPatchInfo:
    info = _look_up(schema, key)
    if not info.is_list:
        raise StrategicMergeError(f"expected slice or array type, but got: {schema.kind}")
    return info


def _strategy(info: FieldPatchInfo) -> str:
    if "replace" in info.strategies:
        return "replace"
    return "merge" if "merge" in info.strategies else ""


def _merge_lists(
    original: list[Any], patch: list[Any], merge_key: str, schema: PatchSchema, deletes: bool = False
) -> list[Any]:
    if not original and not patch:
        return original
    if element_type(original, patch) is dict:
        return _merge_keyed(original, patch, merge_key, schema)
    if deletes:
        unwanted = {identity(value) for value in patch}
        return [value for value in original if identity(value) not in unwanted]
    united = list({identity(value): value for value in (*original, *patch)}.values())
    ours, theirs = partition(united, patch, "")
    return arrange(ours, theirs, patch, original, "", maps=False)


def _merge_keyed(original: list[Any], patch: list[Any], merge_key: str, schema: PatchSchema) -> list[Any]:
    if not merge_key:
        raise StrategicMergeError(f"cannot merge lists without merge key for {schema.kind}")
    original, patch = _obey_in_list(original, patch, merge_key)
    merged = original.copy()
    key = item_key(merge_key)
    places = {key(item): at for at, item in reversed(list(enumerate(merged))) if merge_key in item}
    for item in patch:
        if merge_key not in item:
            raise no_merge_key(item, merge_key)
        at = places.get(key(item))
        if at is None:
            places[key(item)] = len(merged)
            merged.append(item)
        else:
            merged[at] = _merge_objects(merged[at], item, schema)
    ours, theirs = partition(merged, patch, merge_key)
    return arrange(ours, theirs, patch, original, merge_key, maps=True)


def _obey_in_list(original: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Both lists after the directives among the patch's items have been followed."""
    plain: list[Any] = []
    unwanted: set[Any] = set()
    replaced = False
    for item in patch:
        if DIRECTIVE not in item:
            plain.append(item)
            continue
        directive = item[DIRECTIVE]
        if directive == "delete":
            if merge_key not in item:
                raise no_merge_key(item, merge_key)
            unwanted.add(identity(item[merge_key]))
        elif directive == "replace":
            replaced = True
        elif directive == "merge":
            raise StrategicMergeError("merging lists cannot yet be specified in the patch")
        else:
            raise _unknown_directive(directive, item)
    if unwanted:
        original = [item for item in original if merge_key not in item or identity(item[merge_key]) not in unwanted]
    return (plain, []) if replaced else (original, plain)


def _merge_in_order(original: Object, patch: Object, directive: str, schema: PatchSchema) -> None:
    """Merge the list that a ``$setElementOrder`` is about, and take both out of the patch; both objects are ours."""
    order = patch.pop(directive)
    if not isinstance(order, list):
        raise wrong_type(list, order)
    key = _field_named(directive, _SET_ORDER, _BAD_ORDER)
    live, changes = original.get(key, []), patch.get(key, [])
    for values in (live, changes):
        if not isinstance(values, list):
            raise wrong_type(list, values)
    info = _look_up_list(schema, key)
    _check_order(changes, order, info.merge_key)
    if key in original and key in patch:
        merged = changes
        if _strategy(info) == "merge":
            merged = _merge_lists(live, changes, info.merge_key, info.schema or UNTYPED)
            live = order_after_deletions(live, changes, info.merge_key) if info.merge_key else live
    elif key in patch:
        merged = _without_directives(changes)
    elif key in original:
        merged = live
    else:
        return
    ours, theirs = partition(merged, order, info.merge_key)
    maps = element_type(live, changes) is dict
    original[key] = arrange(ours, theirs, order, live, info.merge_key, maps)
    patch.pop(key, None)


def _check_order(changes: list[Any], order: list[Any], merge_key: str) -> None:
    """The patch's items must all be in the order list, in the same order."""
    if not changes or not order:
        return
    if merge_key:
        for item in changes:
            if not isinstance(item, dict):
                raise wrong_type(dict, item)
    key = item_key(merge_key)
    at = 0
    for item in changes:
        # A directive other than delete counts as out of order once the list is used up, as in kube-apiserver.
        directive = item.get(DIRECTIVE, _NONE) if isinstance(item, dict) else _NONE
        if directive is not _NONE and (at < len(order) or (merge_key and directive == "delete")):
            continue
        while at < len(order):
            _check_mergeable(merge_key, item, order[at])
            at += 1
            if key(item) == key(order[at - 1]):
                break
        else:
            raise StrategicMergeError(
                f"The order in patch list:\n{show(changes)}\n doesn't match {_SET_ORDER} list:\n{show(order)}\n"
            )


def _check_mergeable(merge_key: str, *items: Any) -> None:
    if not merge_key:
        return
    for item in items:
        if not isinstance(item, dict):
            raise wrong_type(dict, item)
    for item in items:
        if merge_key not in item:
            raise no_merge_key(item, merge_key)


def _discard_nulls(value: Any) -> None:
    """Take all nulls out of objects, in place; made without recursion."""
    pending = [value]
    while pending:
        container = pending.pop()
        if isinstance(container, dict):
            for key in [key for key, item in container.items() if item is None]:
                del container[key]
            pending.extend(container.values())
        elif isinstance(container, list):
            pending.extend(container)


def _without_directives(value: Any) -> Any:
    """The value without objects that carry a directive: objects are changed, lists made anew; without recursion."""
    if _carries_directive(value):
        return _NONE
    holder: list[Any] = [value]
    pending: list[Any] = [holder]
    while pending:
        container = pending.pop()
        places = container.items() if isinstance(container, dict) else enumerate(container)
        for place, item in list(places):
            if isinstance(item, dict):
                for key in [key for key, inner in item.items() if _carries_directive(inner)]:
                    del item[key]
                pending.append(item)
            elif isinstance(item, list):
                container[place] = [inner for inner in item if not _carries_directive(inner)]
                pending.append(container[place])
    return holder[0]


def _carries_directive(value: Any) -> bool:
    return isinstance(value, dict) and DIRECTIVE in value
