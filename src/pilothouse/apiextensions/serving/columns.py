"""Tables of custom resources: the columns their definition declares, by JSONPath."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from pilothouse.apis.ages import Age, age_of
from pilothouse.apis.columns import NAME
from pilothouse.apis.strategy import Column, Doc
from pilothouse.machinery import jsonpath
from pilothouse.machinery.go_quote import show
from pilothouse.machinery.objects import Object

AGE: Final = {
    "name": "Age",
    "type": "date",
    "description": Doc("meta.v1.ObjectMeta", "creationTimestamp"),
    "jsonPath": ".metadata.creationTimestamp",
}


def table_columns(declared: list[Object] | None) -> tuple[Column, ...]:
    """The columns of a version: its name, then those declared, or the age where none are."""
    columns = [NAME]
    for each in declared or [AGE]:
        try:
            path = jsonpath.parse(each["jsonPath"])
        except jsonpath.JsonPathError:
            # kube-apiserver gives up on a table at the first path it cannot read.
            break
        described = (
            each.get("description") or f"Custom resource definition column (in JSONPath format): {each['jsonPath']}"
        )
        columns.append(
            Column(
                each["name"],
                each["type"],
                _cell(each["type"], path),
                format=each.get("format", ""),
                priority=each.get("priority", 0),
                description=described,
            )
        )
    return tuple(columns)


def _cell(type: str, path: jsonpath.JsonPath) -> Callable[[Object], Any]:
    convert = _CELLS.get(type, _nothing)

    def cell(obj: Object) -> Any:
        found = path.find(obj)
        return convert(found[0]) if found else None

    return cell


def _nothing(value: Any) -> Any:
    return None


def _text(value: Any) -> str:
    if value is None:
        return "<no value>"
    if value.__class__ in (dict, list):
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    return value if value.__class__ is str else show(value)


def _integer(value: Any) -> int | None:
    return int(value) if value.__class__ in (int, float) else None


def _number(value: Any) -> Any:
    if value.__class__ is float and value == int(value) and abs(value) < 1e21:
        return int(value)
    return value if value.__class__ in (int, float) else None


def _date(value: Any) -> Age | str | None:
    if value.__class__ is not str:
        return None
    if not value:
        return "<unknown>"
    try:
        return age_of(value)
    except ValueError:
        return "<invalid>"


_CELLS: Final[dict[str, Callable[[Any], Any]]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": lambda value: value if value.__class__ is bool else None,
    "date": _date,
}
