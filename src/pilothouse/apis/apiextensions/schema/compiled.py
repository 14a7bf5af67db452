"""One version's schema, ready for use: all that is done to an object by its schema, compiled when first needed."""

from __future__ import annotations

from typing import Final

import orjson

from pilothouse.apis.apiextensions.schema import embedded
from pilothouse.apis.apiextensions.schema.checks import WORK, Check, TooMuchWork, accept, compile_check
from pilothouse.apis.apiextensions.schema.defaulting import TooManyDefaults, fill_defaults
from pilothouse.apis.apiextensions.schema.list_types import check_lists
from pilothouse.apis.apiextensions.schema.nodes import NO_DEFAULT, Node, Schema
from pilothouse.apis.apiextensions.schema.pruning import drop_nulls, prune, prune_value
from pilothouse.apis.apiextensions.schema.reporting import field_errors
from pilothouse.apis.apiextensions.schema.values import explain
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import FieldError, Path, invalid
from pilothouse.machinery.lazy import lazy
from pilothouse.machinery.objects import Object
from pilothouse.machinery.ratcheting import CorrelatedObject

_TOO_LARGE: Final = "etcdserver: request is too large"
_TOO_MUCH: Final = "the object has too many values that must be tried against too many alternatives of its schema"


class ObjectSchema:
    """What one version of a custom resource looks like. ``keeps_unknown`` keeps unknown fields everywhere."""

    def __init__(self, schema: Schema, *, keeps_unknown: bool = False) -> None:
        self.source = schema
        self.keeps_unknown = keeps_unknown

    @lazy
    def node(self) -> Node:
        node = Node(self.source)
        if not self.keeps_unknown and (node.has_defaults or node.default is not NO_DEFAULT):
            prune_defaults(node)
        return node

    @lazy
    def _check(self) -> Check:
        return compile_check(self.source)

    @lazy
    def _status_source(self) -> Schema | None:
        found: Schema | None = (self.source.get("properties") or {}).get("status")
        return found

    @lazy
    def _status_check(self) -> Check:
        return accept if self._status_source is None else compile_check(self._status_source)

    def compile(self) -> None:
        """Make at once what would be made at the first use: of a large schema that takes seconds."""
        _ = self.node, self._check, self._status_check

    def clean(self, obj: Object, *, keep_nulls: bool = False) -> list[str]:
        """Drop what the schema does not know, but for metadata; gives the paths. Raises ``DecodeError``."""
        node = self.node
        dropped = [] if self.keeps_unknown else prune(obj, node)
        if not keep_nulls:
            self.drop_nulls(obj)
        if node.has_embedded:
            errs: list[str] = []
            embedded.coerce(obj, node, None, errs)
            dropped += sorted(errs)
        return dropped

    def drop_nulls(self, obj: Object) -> None:
        """Drop nulls of fields that may not be null and have no default."""
        if not self.keeps_unknown:
            drop_nulls(obj, self.node)

    def default(self, obj: Object) -> None:
        """Fill in defaults. Raises a Status for an object that they would make larger than any store takes."""
        try:
            fill_defaults(obj, self.node)
        except TooManyDefaults:
            raise errors.generic(_TOO_LARGE) from None

    @property
    def has_defaults(self) -> bool:
        return self.node.has_defaults

    def errors(self, obj: Object, old: Object | None = None) -> list[FieldError]:
        """Value errors of an object; on update, those that it had before are forgiven where nothing changed."""
        WORK.renew()
        try:
            if self._check(obj):
                return []
            correlation = None if old is None else CorrelatedObject(obj, old, self.source)
            return field_errors(None, explain(self.source, obj, "", correlation))
        except TooMuchWork:
            return [invalid(None, "", _TOO_MUCH)]

    def status_errors(self, obj: Object, old: Object) -> list[FieldError]:
        """The same for its status alone."""
        status, source = obj.get("status"), self._status_source
        WORK.renew()
        try:
            if source is None or "status" not in obj or self._status_check(status):
                return []
            correlation = CorrelatedObject(obj, old, self.source).key("status")
            return field_errors(Path("status"), explain(source, status, "", correlation))
        except TooMuchWork:
            return [invalid(Path("status"), "", _TOO_MUCH)]

    def embedded_errors(self, obj: Object) -> list[FieldError]:
        """Errors of embedded objects."""
        errs: list[FieldError] = []
        if self.node.has_embedded:
            embedded.check(obj, self.node, None, errs)
        return errs

    def list_errors(self, obj: Object, old: Object | None = None) -> list[FieldError]:
        """Errors of sets and maps, unless the object had some before."""
        errs = check_lists(obj, self.node) if self.node.has_lists else []
        return [] if errs and old is not None and check_lists(old, self.node) else errs


def prune_defaults(node: Node) -> None:
    """Drop from defaults what the schema does not know."""
    for child in node.children():
        prune_defaults(child)
    default = node.default
    if default is not NO_DEFAULT and default.__class__ in (dict, list):
        copy = orjson.loads(orjson.dumps(default))
        if prune_value(copy, node):
            node.default = copy
