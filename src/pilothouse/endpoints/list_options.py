"""The options of lists, watches and collection deletes, read from the query and checked as in kube-apiserver."""

from __future__ import annotations

from dataclasses import dataclass

from pilothouse.endpoints.query import Query
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import ShownScope
from pilothouse.machinery import errors, fields, labels
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, not_supported
from pilothouse.machinery.gvk import GroupKind
from pilothouse.machinery.workers import weighed
from pilothouse.registry.store.listing import EXACT, NOT_OLDER, ListOptions


@dataclass(slots=True)
class WatchOptions:
    """What only watches know."""

    bookmarks: bool = False
    initial_events: bool | None = None
    timeout_seconds: int | None = None
    marks_start: bool = False
    """A bookmark tells where the present state ends and the changes begin."""


_NOTHING = ListOptions()


async def list_options(scope: ShownScope, request: APIRequest) -> tuple[ListOptions, WatchOptions]:
    """The same as ``read_list_options``, without holding the loop: selectors can be long."""
    return await weighed(len(request.query), read_list_options, scope, request)


def read_list_options(scope: ShownScope, request: APIRequest) -> tuple[ListOptions, WatchOptions]:
    """Both, or a 400 for what cannot be read and a 422 for what does not go together.

    Refusals come in kube-apiserver's order: numbers, selectors, what does not go together, fields that cannot be
    selected by. The old paths of watches are held to the rules of lists.
    """
    if not request.query:
        return _NOTHING, WatchOptions()
    query = request.options
    watch = WatchOptions(
        query.boolean("allowWatchBookmarks"),
        query.optional_boolean("sendInitialEvents"),
        query.integer("timeoutSeconds"),
    )
    options = ListOptions(
        limit=query.integer("limit") or 0,
        token=query.text("continue"),
        version=query.text("resourceVersion"),
        match=query.text("resourceVersionMatch"),
        labels=_labels(query),
        fields=_fields(query),
    )
    if query.boolean("watch"):
        streams_lists = "WatchList" in scope.strategy.gates
        errs = _watch_errors(options, watch, streams_lists=streams_lists)
        watch.marks_start = watch.initial_events is True or (streams_lists and _begins_anew(options, watch))
    else:
        errs = _list_errors(options, watch)
    if errs:
        raise errors.invalid(GroupKind("meta.k8s.io", "ListOptions"), "", errs)
    if options.fields is not None:
        try:
            options.fields = options.fields.transform(scope.strategy.convert_field)
        except ValueError as error:
            raise errors.bad_request(str(error)) from None
    return options, watch


def _labels(query: Query) -> labels.Selector | None:
    if not query.selection.by_label:
        return None
    try:
        selector = query.selection.labels
    except ValueError as error:
        raise errors.bad_request(str(error)) from None
    return None if selector.empty else selector


def _fields(query: Query) -> fields.Selector | None:
    if not query.selection.by_field:
        return None
    try:
        selector = query.selection.fields
    except ValueError as error:
        raise errors.bad_request(str(error)) from None
    return None if selector.empty else selector


def _list_errors(options: ListOptions, watch: WatchOptions) -> list[FieldError]:
    errs: list[FieldError] = []
    match, path = options.match, Path("resourceVersionMatch")
    if match:
        if not options.version:
            errs.append(forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if options.token:
            errs.append(forbidden(path, "resourceVersionMatch is forbidden when continue is provided"))
        if match not in (EXACT, NOT_OLDER):
            errs.append(not_supported(path, match, (EXACT, NOT_OLDER, "")))
        if match == EXACT and options.version == "0":
            errs.append(forbidden(path, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if watch.initial_events is not None:
        errs.append(forbidden(Path("sendInitialEvents"), "sendInitialEvents is forbidden for list"))
    return errs


def _watch_errors(options: ListOptions, watch: WatchOptions, *, streams_lists: bool) -> list[FieldError]:
    errs: list[FieldError] = []
    match, path = options.match, Path("resourceVersionMatch")
    if watch.initial_events is not None and match != NOT_OLDER:
        errs.append(forbidden(path, f"sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER}"))
    if watch.initial_events is not None and not streams_lists:
        why = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
        errs.append(forbidden(Path("sendInitialEvents"), why))
    if match:
        if watch.initial_events is None:
            errs.append(
                forbidden(path, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
            )
        if match != NOT_OLDER:
            errs.append(not_supported(path, match, (NOT_OLDER,)))
    if options.token and (match or (streams_lists and _begins_anew(options, watch))):
        errs.append(forbidden(path, "resourceVersionMatch is forbidden when continue is provided"))
    return errs


def _begins_anew(options: ListOptions, watch: WatchOptions) -> bool:
    """A watch from no version in particular counts as one that asks for the present state first."""
    return watch.initial_events is None and options.version in ("", "0")
