"""Tables: what ``kubectl get`` prints. Rows come from the resource's columns, or name and age where it has none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from pilothouse.apis.columns import PLAIN_COLUMNS
from pilothouse.apis.documentation import describe
from pilothouse.apis.strategy import Column, Doc
from pilothouse.endpoints.negotiation import Media
from pilothouse.endpoints.output.rows import RowMaker
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import ShownScope
from pilothouse.machinery import errors
from pilothouse.machinery.go_json import escape_html
from pilothouse.machinery.go_quote import quote
from pilothouse.storage.cacher import Entry


def table_of(
    scope: ShownScope,
    request: APIRequest,
    media: Media,
    entries: Sequence[Entry],
    revision: str,
    metadata: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A Table of these entries: of a list, which has metadata of its own, or of one object."""
    columns, maker = _maker(scope, request, media, None if metadata is None else entries)
    if metadata is None:
        version = entries[0].revision if entries else revision
        metadata = {"resourceVersion": str(version)} if version else {}  # a dry run has made none
    rows = [orjson.loads(maker.find(entry) or maker.make(entry)) for entry in entries]
    return {**_table(media, columns, metadata), "rows": rows if rows or not _says_null(scope) else None}


def table_parts(
    scope: ShownScope, request: APIRequest, media: Media, entries: Sequence[Entry], metadata: dict[str, Any]
) -> tuple[bytes, RowMaker | None, bytes]:
    """A Table of a list in JSON: what comes before its rows, what makes them, and what follows."""
    columns, maker = _maker(scope, request, media, entries)
    if not entries and _says_null(scope):
        return escape_html(orjson.dumps({**_table(media, columns, metadata), "rows": None})), None, b"\n"
    return escape_html(orjson.dumps(_table(media, columns, metadata)))[:-1] + b',"rows":[', maker, b"]}\n"


def _maker(
    scope: ShownScope, request: APIRequest, media: Media, listed: Sequence[Entry] | None
) -> tuple[tuple[Column, ...], RowMaker]:
    """The columns of a table, which may depend on all that is listed, and what makes its rows."""
    include, columns = include_object(request), scope.columns or PLAIN_COLUMNS
    varying = scope.strategy.list_columns if listed is not None else None
    if varying is not None and listed is not None:
        columns = varying(orjson.loads(entry.data) for entry in listed)
    return columns, RowMaker(scope, columns, media.version, include, keep=varying is None)


def _says_null(scope: ShownScope) -> bool:
    """Whether a table without rows has null for them: of kinds without columns of their own, and of definitions."""
    return not scope.columns or scope.kind.kind == "CustomResourceDefinition"


def _table(media: Media, columns: tuple[Column, ...], metadata: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{media.version}",
        "metadata": metadata,
        "columnDefinitions": [definition_of(column) for column in columns if column.name],
    }


def include_object(request: APIRequest) -> str:
    """``None``, ``Metadata`` (the default) or ``Object``; 400 for anything else."""
    value = request.options.text("includeObject")
    if value not in ("", "None", "Metadata", "Object"):
        why = "must be 'Metadata', 'Object', 'None', or empty"
        raise errors.bad_request(
            f"Unable to convert to Table as requested: includeObject: Invalid value: {quote(value)}: {why}"
        )
    return value or "Metadata"


def definition_of(column: Column) -> dict[str, Any]:
    """A column's definition."""
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": _description(column.description),
        "priority": column.priority,
    }


def _description(text: str | Doc) -> str:
    return describe(text.type, text.field).removesuffix(text.without) if isinstance(text, Doc) else text
