"""Who an object belongs to: references to owners, and claiming the objects that a controller's selector matches.

An object has at most one owner that controls it. A controller adopts orphans that match its selector and releases what
it controls and no longer matches; what another controls is not its business.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from pilothouse.controllers.runtime.client import ResourceClient
from pilothouse.controllers.runtime.indexer import Key, Lister, key_of
from pilothouse.machinery import errors
from pilothouse.machinery.labels import Selector
from pilothouse.machinery.objects import Object
from pilothouse.net.work_turns import work_turns

CanAdopt = Callable[[], Awaitable[None]]
_LOOKED_AT: Final = 1_000
"""So many objects are looked at in a millisecond."""


def owner_reference(owner: Object, kind: str, api_version: str) -> dict[str, Any]:
    """A reference to an owner that does not control the object."""
    metadata = owner["metadata"]
    return {"apiVersion": api_version, "kind": kind, "name": metadata["name"], "uid": metadata["uid"]}


def controller_reference(owner: Object, kind: str, api_version: str) -> dict[str, Any]:
    """The reference of the owner that controls the object and is not deleted before it in the foreground."""
    return {**owner_reference(owner, kind, api_version), "controller": True, "blockOwnerDeletion": True}


def controller_of(obj: Object) -> dict[str, Any] | None:
    """The reference to the owner that controls an object; None for an orphan."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            found: dict[str, Any] = reference
            return found
    return None


def is_controlled_by(obj: Object, owner: Object) -> bool:
    """Whether this very owner controls the object."""
    reference = controller_of(obj)
    return reference is not None and bool(reference["uid"] == owner["metadata"]["uid"])


def is_being_deleted(obj: Object) -> bool:
    """Whether deletion of the object has begun."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def owners_to_wake(obj: Object, kind: str, owners: Lister) -> list[Key]:
    """Whom a change of an object concerns: the owner that controls it, else all of the kind that may adopt it.

    ``owners`` has the reading of their selectors.
    """
    metadata = obj["metadata"]
    reference = controller_of(obj)
    if reference is not None:
        return [(metadata["namespace"], reference["name"])] if reference["kind"] == kind else []
    own = metadata.get("labels") or {}
    if not own:
        return []
    candidates = ((each, owners.selector_of(each)) for each in owners.list(metadata["namespace"]))
    return [key_of(each) for each, selector in candidates if not selector.empty and selector.matches(own)]


class CannotAdopt(Exception):
    """The owner has gone, is another one by now, or is being deleted."""


def recheck_owner(owners: ResourceClient, owner: Object) -> CanAdopt:
    """A ``can_adopt`` that reads the owner anew: our view of it may be old."""

    async def can_adopt() -> None:
        metadata = owner["metadata"]
        found = await owners.get(metadata.get("namespace") or "", metadata["name"])
        if found["metadata"]["uid"] != metadata["uid"]:
            raise CannotAdopt(f"{metadata['name']} is another object by now")
        if is_being_deleted(found):
            raise CannotAdopt(f"{metadata['name']} is being deleted")

    return can_adopt


class ControllerRefClaim:
    """Adopts and releases objects of one resource for one owner.

    ``can_adopt`` is asked at most once, before the first adoption: it makes sure that the owner itself, read anew, is
    still there and not being deleted, and raises otherwise.
    """

    def __init__(
        self,
        objects: ResourceClient,
        owner: Object,
        kind: str,
        api_version: str,
        selector: Selector,
        can_adopt: CanAdopt,
        finalizers: tuple[str, ...] = (),
    ) -> None:
        self._objects, self._owner, self._selector, self._can_adopt = objects, owner, selector, can_adopt
        self._reference = controller_reference(owner, kind, api_version)
        self._finalizers = finalizers
        self._may_adopt = False

    async def claim_all(self, candidates: Iterable[Object]) -> list[Object]:
        """Adopt and release; those that belong to the owner now. The first failure is raised when all were tried."""
        claimed: list[Object] = []
        failure: Exception | None = None
        uid = self._owner["metadata"]["uid"]
        for number, obj in enumerate(candidates, 1):
            if number % _LOOKED_AT == 0:
                await work_turns().begin()
            reference = controller_of(obj)
            if reference is not None and reference["uid"] == uid and self._matches(obj):
                claimed.append(obj)  # nearly all of them, again and again: nothing to write, nothing to wait for
                continue
            try:
                if await self.claim(obj):
                    claimed.append(obj)
            except errors.StatusError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return claimed

    async def claim(self, obj: Object) -> bool:
        """Whether the object belongs to the owner now."""
        metadata, owner = obj["metadata"], self._owner
        reference = controller_of(obj)
        matches = self._matches(obj)
        if reference is not None:
            if reference["uid"] != owner["metadata"]["uid"]:
                return False
            if not matches and not is_being_deleted(owner):
                await self._release(metadata)
            return bool(matches)
        if not matches or is_being_deleted(owner) or is_being_deleted(obj):
            return False
        namespace = owner["metadata"].get("namespace")
        if namespace and namespace != metadata.get("namespace"):
            return False
        return await self._adopt(metadata)

    def _matches(self, obj: Object) -> bool:
        return self._selector.matches(obj["metadata"].get("labels") or {})

    async def _adopt(self, metadata: dict[str, Any]) -> bool:
        if not self._may_adopt:
            await self._can_adopt()
            self._may_adopt = True
        change: dict[str, Any] = {"ownerReferences": [self._reference], "uid": metadata["uid"]}
        if self._finalizers:
            change["finalizers"] = list(self._finalizers)
        try:
            await self._patch(metadata, change)
        except errors.NotFound:
            return False
        return True

    async def _release(self, metadata: dict[str, Any]) -> None:
        """Take our reference off. That the object has gone, or is another one by now, is as good."""
        gone = {"$patch": "delete", "uid": self._reference["uid"]}
        change: dict[str, Any] = {"ownerReferences": [gone], "uid": metadata["uid"]}
        if self._finalizers:
            change["$deleteFromPrimitiveList/finalizers"] = list(self._finalizers)
        try:
            await self._patch(metadata, change)
        except (errors.NotFound, errors.Invalid):
            return

    async def _patch(self, metadata: dict[str, Any], change: dict[str, Any]) -> None:
        where = metadata.get("namespace") or ""
        await self._objects.patch(where, metadata["name"], {"metadata": change}, "strategic")
