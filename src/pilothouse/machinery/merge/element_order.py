"""The order of a list after a strategic merge.

Items of the patch keep the patch's order (or that of a ``$setElementOrder`` list), items only the server knows keep the
live order. The two rows are then interleaved: a server item goes before the first patch item that follows it in the
live list, so an item that is new, and thus has no place in the live list, never waits for a server item.

    live [a b c], patch [c x]   →   server row [a b], patch row [c x]   →   a b c x
    live [a b],   patch [x]     →   server row [a b], patch row [x]     →   x a b
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from pilothouse.machinery.go_quote import show

DIRECTIVE: Final = "$patch"

_GO_TYPES: Final[dict[type, str]] = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
}


class StrategicMergeError(ValueError):
    """A patch that cannot be merged; ``code`` is the status the client gets with the message."""

    def __init__(self, message: str, code: int = 500) -> None:
        super().__init__(message)
        self.code = code


def go_type(value: Any) -> str:
    """The name of a JSON value's type in Go."""
    return _GO_TYPES.get(type(value), "%!s(<nil>)")


def wrong_type(expected: type, actual: Any) -> StrategicMergeError:
    return StrategicMergeError(f"expected a {_GO_TYPES[expected]}, but received a {go_type(actual)}")


def no_merge_key(item: dict[str, Any], merge_key: str) -> StrategicMergeError:
    return StrategicMergeError(f"map: {show(item)} does not contain declared merge key: {merge_key}")


def identity(value: Any) -> Any:
    """Something hashable that is equal for equal values of equal type only."""
    return (type(value), show(value) if isinstance(value, (dict, list)) else value)


def item_key(merge_key: str) -> Callable[[Any], Any]:
    """How items are told apart: by their merge key's value, or as a whole if they have none."""
    if not merge_key:
        return identity
    return lambda item: identity(item.get(merge_key) if isinstance(item, dict) else None)


def element_type(*lists: Sequence[Any]) -> type:
    """The one type of all items; lists of lists, mixed and empty lists are errors."""
    found: type | None = None
    for values in lists:
        for value in values:
            if found is None:
                found = type(value)
                if found is list:
                    raise StrategicMergeError("lists of lists are not supported", 422)
            elif type(value) is not found:
                raise StrategicMergeError(f"list element types are not identical: {show(list(map(list, lists)))}")
    if found is None:
        raise StrategicMergeError("no elements in any of the given slices")
    return found


def partition(items: list[Any], named: Sequence[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Items that appear in ``named`` and items that do not."""
    key = item_key(merge_key)
    if merge_key:
        _check_keys(items, merge_key)
        maps = next((at for at, item in enumerate(named) if not isinstance(item, dict)), len(named))
        names = {key(item) for item in named[:maps] if merge_key in item}
        if maps < len(named) and any(key(item) not in names for item in items):  # who is found before it is not told
            raise StrategicMergeError(f"value for key {maps} is not a map")
    else:
        names = {key(item) for item in named}
    present = [item for item in items if key(item) in names]
    return present, [item for item in items if key(item) not in names]


def arrange(
    patch: list[Any],
    server: list[Any],
    patch_order: Sequence[Any],
    live_order: Sequence[Any],
    merge_key: str,
    maps: bool,
) -> list[Any]:
    """Both rows in their orders, then interleaved by the live order."""
    patch = _sort(patch, patch_order, merge_key, maps)
    server = _sort(server, live_order, merge_key, maps)
    key = item_key(merge_key if maps else "")
    places = _places(live_order, key)
    result: list[Any] = []
    waiting = 0
    for item in server:
        place = places.get(key(item), -1)
        while waiting < len(patch):
            other = places.get(key(patch[waiting]), -1)
            if 0 <= place < other:
                break
            result.append(patch[waiting])
            waiting += 1
        result.append(item)
    return result + patch[waiting:]


def order_after_deletions(live: list[Any], changes: list[Any], merge_key: str) -> list[Any]:
    """The live order that a ``$setElementOrder`` sees after its list was merged.

    kube-apiserver deletes in place: the gap closes, the last place keeps what it held, and new items then fill the
    places at the end. A new item can so come to have a place in the live order.

        live [1 2 4], delete 1, add 3   →   [2 4 4]   →   [2 4 3]
    """
    deleted = [identity(item[merge_key]) for item in changes if item.get(DIRECTIVE) == "delete"]
    if not deleted:
        return live
    key = item_key(merge_key)
    places: dict[Any, list[int]] = {}
    for at, item in enumerate(live):
        places.setdefault(key(item), []).append(at)
    gone: set[int] = set()
    left_behind: list[Any] = []
    last = len(live) - 1
    for unwanted in deleted:
        for at in places.pop(unwanted, ()):
            while last in gone:
                last -= 1
            left_behind.append(live[last])
            gone.add(at)
    row = [item for at, item in enumerate(live) if at not in gone]
    length = len(row)
    row += reversed(left_behind)
    if any(item.get(DIRECTIVE) == "replace" for item in changes):
        return row
    known = set(map(key, row[:length]))
    for item in changes:
        if DIRECTIVE not in item and key(item) not in known and length < len(row):
            row[length] = item
            length += 1
            known.add(key(item))
    return row


def _places(order: Sequence[Any], key: Callable[[Any], Any]) -> dict[Any, int]:
    places: dict[Any, int] = {}
    for position, item in enumerate(order):
        places.setdefault(key(item), position)
    return places


def _sort(items: list[Any], order: Sequence[Any], merge_key: str, maps: bool) -> list[Any]:
    """Items in the given order; items marked for deletion go to the end."""
    deleted: list[Any] = []
    if maps:
        _check_keys(items, merge_key)
        _check_keys(order, merge_key)
        deleted = [item for item in items if item.get(DIRECTIVE) == "delete"]
        items = [item for item in items if item.get(DIRECTIVE) != "delete"]
    key = item_key(merge_key if maps else "")
    places = _places(order, key)
    ranks = [places.get(key(item), -1) for item in items]
    if -1 not in ranks:
        return [item for _, item in sorted(zip(ranks, items, strict=True), key=lambda pair: pair[0])] + deleted
    return _sort_with_strangers(items, ranks) + deleted


def _sort_with_strangers(items: list[Any], ranks: list[int]) -> list[Any]:
    """Insertion sort in which an item of unknown rank counts as smaller than its left neighbour, and as larger."""
    row = list(zip(ranks, items, strict=True))
    for start in range(1, len(row)):
        at = start
        while at > 0 and (row[at][0] < 0 or row[at - 1][0] < 0 or row[at][0] < row[at - 1][0]):
            row[at], row[at - 1] = row[at - 1], row[at]
            at -= 1
    return [item for _, item in row]


def _check_keys(items: Sequence[Any], merge_key: str) -> None:
    for item in items:
        if not isinstance(item, dict):
            raise wrong_type(dict, item)
        if merge_key not in item:
            raise no_merge_key(item, merge_key)
