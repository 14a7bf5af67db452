"""The way of a write from the decoded object to the store, shared by create, update, patch and apply.

    decoded, defaulted → field management → mutating admission
        → store (rules, validation) → validating admission → stored

``WriteRequest`` holds what all steps of one request need. Its hooks may run several times, once for every lost race.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from pilothouse.apis.strategy import Context
from pilothouse.endpoints.admission import CREATE, UPDATE, Attributes
from pilothouse.endpoints.audit_event import AuditEvent
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import Endpoint, ResourceScope
from pilothouse.endpoints.write_options import WriteOptions
from pilothouse.machinery import errors
from pilothouse.machinery.field_manager import FieldManager, entries_of, keep_times, manager_of, set_entries
from pilothouse.machinery.gvk import GroupVersionResource
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.emptied import like, without_notes
from pilothouse.machinery.spans import step
from pilothouse.machinery.structured.atoms import as_compared
from pilothouse.machinery.workers import LONG, VERY_LONG, weighed
from pilothouse.registry.rest.before_create import ensure_namespace, wipe_system_fields
from pilothouse.storage.backends.contract import TooLarge
from pilothouse.storage.cacher import Entry

Stored = TypeVar("Stored")
_SAME_OWNERS: Final = (
    ".metadata.ownerReferences contains duplicate entries{}; API server dedups owner references in 1.20+, and may "
    "reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}"
)
_AFTER_ADMISSION: Final = " after mutating admission happens"
_OWNER_FIELDS: Final = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")


class WriteRequest:
    """One writing request."""

    __slots__ = ("_admitted", "_options", "_request", "_scope", "_slim", "ctx", "manager")

    def __init__(self, scope: ResourceScope, request: APIRequest, options: WriteOptions) -> None:
        self._scope = scope
        self._request = request
        self._options = options
        self._slim = False
        self._admitted: Attributes | None = None
        """What mutating admission was shown last."""
        self.ctx: Context = scope.context(request)
        self.ctx.dry_run = options.dry_run
        agent = request.headers.get(b"user-agent", b"").decode(errors="surrogateescape")
        self.manager = manager_of(options.field_manager, agent)

    async def create(self, obj: Object) -> Entry:
        """Store a new object."""
        metadata = obj["metadata"]
        wipe_system_fields(metadata)
        ensure_namespace(self._scope.resource, self.ctx, metadata)
        if has_owners(obj):
            await weighed(self.ctx.weight, self.merge_owners, obj)
        obj = await self._prepare(CREATE, obj, None)

        def store() -> Awaitable[Entry]:
            if self._slim:
                obj["metadata"].pop("managedFields", None)
            return self._scope.store.create(self.ctx, obj, self._validator(CREATE))

        step("About to store object in database")
        try:
            return await store()
        except TooLarge as error:
            return await self._store_slim(store, error)

    async def update(
        self,
        name: str,
        change: Callable[[Object | None], Awaitable[Object]],
        *,
        create: bool | None = None,
        glimpse: tuple[Entry, Object] | None = None,
    ) -> tuple[Entry, bool]:
        """Change a stored object; ``change`` makes the wanted one, defaulted, from it. (entry, created).

        ``glimpse`` is the object as it was seen before, decoded for this request alone.
        """
        self.ctx.glimpse = glimpse

        async def wanted(old: Object | None) -> Object:
            obj = await change(old)
            ensure_namespace(self._scope.resource, self.ctx, obj["metadata"])
            obj = await self._prepare(CREATE if old is None else UPDATE, obj, old)
            if self._slim:
                obj["metadata"].pop("managedFields", None)
            return obj

        def store() -> Awaitable[tuple[Entry, bool]]:
            return self._scope.store.update(
                self.ctx,
                name,
                wanted,
                self._validator(UPDATE),
                strategy=self._scope.strategy,
                create=create,
                authorize_and_validate_create=self._authorize_and_validate_create,
            )

        step("About to store object in database")
        try:
            return await store()
        except TooLarge as error:
            return await self._store_slim(store, error)

    async def _authorize_and_validate_create(self, obj: Object, old: Object | None) -> None:
        """An update or apply that creates needs the right to create."""
        request = self._request
        if request.ask is None:
            raise errors.internal_error("no authorizer provided, unable to authorize a create on update")
        refusal = await request.ask(request, "create")
        if refusal is not None:
            raise refusal.error
        validate = self._validator(CREATE)
        if validate is not None:
            await validate(obj, old)

    async def _store_slim(self, store: Callable[[], Awaitable[Stored]], error: TooLarge) -> Stored:
        """An object that is too large is tried once more without managed fields, unless they are the point."""
        if self._options.applied:
            raise errors.generic(str(error)) from None
        self._slim = True
        try:
            return await store()
        except TooLarge as again:
            raise errors.generic(str(again)) from None

    def warn(self) -> None:
        """Hand warnings of the strategy and of admission to the answer, which is about to be written."""
        step("About to write a response")
        for warning in self.ctx.warnings:
            self._request.warn(warning)

    async def _prepare(self, operation: str, obj: Object, old: Object | None) -> Object:
        ctx = self.ctx
        ctx.raw = self._request.raw
        fields, given = self._scope.field_manager, obj
        if fields is not None and fields.asks:
            obj = await fields.waiting(ctx.weight, lambda manager: self._track(given, old, manager))
        elif ctx.weight < LONG:
            obj = self._track(obj, old, fields)
        else:
            obj = await weighed(ctx.weight, self._track, obj, old, fields)
        admission = self._scope.admission
        if admission is not None and admission.handles(operation):
            attributes = self._admitted = self._attributes(operation, obj, old)
            step("About to check admission control")
            await admission.admit(attributes)
            obj = attributes.object if attributes.object is not None else obj
            ctx.weight = max(ctx.weight, attributes.weight)
        if has_owners(obj):
            await weighed(ctx.weight, self.merge_owners, obj, _AFTER_ADMISSION)
        if ctx.weight >= VERY_LONG:
            self._request.note_made(obj, old)
        return obj

    def merge_owners(self, obj: Object, when: str = "") -> None:
        """Drop owner references that stand twice, and say so."""
        owners = obj["metadata"].get("ownerReferences") or ()
        kept: dict[tuple[str | bool | None, ...], Object] = {}
        for owner in owners:
            kept.setdefault(tuple(map(owner.get, _OWNER_FIELDS)), owner)
        if len(kept) < len(owners):
            first = {id(owner) for owner in kept.values()}
            twice = [owner.get("uid", "") for owner in owners if id(owner) not in first]
            self.ctx.warnings.append(_SAME_OWNERS.format(when, ", ".join(twice)))
            obj["metadata"]["ownerReferences"] = list(kept.values())

    def _track(self, obj: Object, old: Object | None, fields: FieldManager | None) -> Object:
        """Note in managedFields what this manager changed; apply has done so already."""
        scope = self._scope
        if fields is None or self._options.applied:
            return obj if old is None else like(keep_times(obj, old), obj)
        if scope.from_hub is None and obj.__class__ is dict:
            obj = fields.update(old, obj, self.manager, self.ctx.now, self._request.known)
        else:
            if scope.from_hub is None:
                served, live = as_compared(fields.shape, obj), old
            else:
                served, live = scope.from_hub(without_notes(obj)), None if old is None else scope.from_hub(old)
            tracked = fields.update(live, served, self.manager, self.ctx.now)
            obj = like(set_entries(obj, entries_of(tracked)), obj)
        return obj if old is None else like(keep_times(obj, old), obj)

    def _validator(self, operation: str) -> Callable[[Object, Object | None], Awaitable[None]] | None:
        admission = self._scope.admission
        if admission is None or not admission.handles(operation):
            return None

        def validate(obj: Object, old: Object | None) -> Awaitable[None]:
            return admission.validate(self._final_attributes(operation, obj, old))

        return validate

    def _final_attributes(self, operation: str, obj: Object, old: Object | None) -> Attributes:
        """What validating admission is shown: what was admitted, with the object as it has become.

        What had no name yet is described anew.
        """
        attributes = self._admitted
        if attributes is None or attributes.operation != operation or not attributes.namespace:
            return self._attributes(operation, obj, old)
        attributes.object, attributes.old_object, attributes.reinvocation = obj, old, None
        attributes.name = attributes.name or obj["metadata"].get("name", "")
        attributes.weight = self.ctx.weight
        return attributes

    def _attributes(self, operation: str, obj: Object, old: Object | None) -> Attributes:
        options = write_options_object(self._request, operation)
        return attributes_of(self._scope, self._request, self.ctx, operation, obj, old, options)


async def note_object(audit: AuditEvent, weight: int, scope: ResourceScope, obj: Object) -> None:
    """Tell the audit log of the object that a request carries, as it is served where all of it is written down."""
    if audit.wants_request:
        await weighed(weight, lambda: audit.note_object(scope.served_object(obj)))
    else:
        audit.note_object(obj)


def has_owners(obj: Object) -> bool:
    """Whether there are owner references that could stand twice."""
    owners = obj["metadata"].get("ownerReferences")
    return owners is not None and len(owners) > 1


def attributes_of(
    scope: Endpoint,
    request: APIRequest,
    ctx: Context,
    operation: str,
    obj: Object | None,
    old: Object | None,
    options: dict[str, Any] | None = None,
) -> Attributes:
    """The admission attributes of a write."""
    resource = scope.resource
    named = obj if obj is not None else old
    name = request.info.name or (named["metadata"].get("name", "") if named is not None else "")
    namespace = ctx.namespace
    if not namespace and resource.name == "namespaces" and not resource.group:
        namespace = name
    audit = request.audit
    return Attributes(
        operation=operation,
        kind=scope.kind,
        resource=GroupVersionResource(resource.group, resource.version, resource.name),
        subresource=scope.subresource,
        namespace=namespace,
        name=name,
        user=request.user,
        object=obj,
        old_object=old,
        options=options or {},
        dry_run=ctx.dry_run,
        warnings=ctx.warnings,
        annotations={} if audit is None else audit.annotations,
        request_annotations={} if audit is None or not audit.wants_request else audit.annotations,
        verb=request.info.verb,
        times={} if audit is None else audit.times,
        path_name=request.info.name,
        scope=scope,
        weight=ctx.weight,
    )


_OPTION_KINDS: Final = {
    operation: {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    for operation, kind in ((CREATE, "CreateOptions"), (UPDATE, "UpdateOptions"))
}


def write_options_object(request: APIRequest, operation: str) -> dict[str, Any]:
    """The options of a write as admission shows them, without what was left open."""
    options: dict[str, Any] = _OPTION_KINDS[operation]
    if not request.query:
        return options
    query = request.options
    given = {name: query.first(name) for name in ("fieldManager", "fieldValidation")}
    dry_run = query.all("dryRun")
    return {**options, **({"dryRun": dry_run} if dry_run else {}), **{k: v for k, v in given.items() if v}}
