"""The templates that a workload had: controller revisions, numbered, found again when a template comes back.

    ensure      the revision of the present template: the newest if it has it, an older one (made the newest), or a new
    drop_oldest those beyond the limit that no pod needs are deleted

Names are made of the owner's name and a hash of the template, as kube-controller-manager makes them; where two
templates have one hash, a count of collisions tells them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from pilothouse.controllers.runtime.client import ResourceClient
from pilothouse.controllers.runtime.indexer import BY_CONTROLLER_UID
from pilothouse.controllers.runtime.informer import Informer
from pilothouse.controllers.runtime.owners import CanAdopt, controller_of, controller_reference
from pilothouse.controllers.runtime.template_hash import encode
from pilothouse.machinery import errors
from pilothouse.machinery.labels import Selector
from pilothouse.machinery.objects import Object
from pilothouse.machinery.workers import weighed

_LONGEST_PREFIX: Final = 223
_OFFSET, _PRIME = 2166136261, 16777619
_ESCAPED: Final = ((b"<", b"\\u003c"), (b">", b"\\u003e"), (b"&", b"\\u0026"))


@dataclass(frozen=True, slots=True)
class RevisionStyle:
    """What revisions of one kind of workload look like."""

    kind: str
    hash_label: str


def template_of(revision: Object) -> Object:
    """The pod template that a revision keeps; an empty one if it keeps something else."""
    kept: Any = revision.get("data")
    for part in ("spec", "template"):
        kept = kept.get(part) if isinstance(kept, dict) else None
    return {name: value for name, value in (kept or {}).items() if name != "$patch"}


def data_of(template: Object) -> Object:
    """What a revision keeps of a template: a patch that puts it back, its keys in order."""
    patch = {"spec": {"template": {**template, "$patch": "replace"}}}
    data: Object = orjson.loads(orjson.dumps(patch, option=orjson.OPT_SORT_KEYS))
    return data


def hash_of(revision: Object, style: RevisionStyle) -> str:
    """The hash in a revision's labels."""
    return str((revision["metadata"].get("labels") or {}).get(style.hash_label, ""))


def data_hash(data: Object, collisions: int) -> str:
    """The hash of what a revision keeps; another one for each collision that was met."""
    written = orjson.dumps(data, option=orjson.OPT_SORT_KEYS)
    for plain, escaped in _ESCAPED:
        written = written.replace(plain, escaped)
    number = _OFFSET
    for byte in written + str(collisions).encode():
        number = (number * _PRIME & 0xFFFFFFFF) ^ byte
    return encode(number)


def same_template(left: Object, right: Object) -> bool:
    """Whether two templates are equal; what is null is not there."""
    return bool(_without_nulls(left) == _without_nulls(right))


def _with_template(revisions: Sequence[Object], template: Object) -> list[Object]:
    return [each for each in revisions if same_template(template_of(each), template)]


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def make_revision(owner: Object, style: RevisionStyle, number: int, collisions: int) -> Object:
    """The revision of an owner's present template."""
    template = owner["spec"]["template"]
    data = data_of(template)
    digest = data_hash(data, collisions)
    labels = {**((template.get("metadata") or {}).get("labels") or {}), style.hash_label: digest}
    metadata: dict[str, Any] = {
        "name": f"{owner['metadata']['name'][:_LONGEST_PREFIX]}-{digest}",
        "namespace": owner["metadata"]["namespace"],
        "labels": labels,
        "ownerReferences": [controller_reference(owner, style.kind, "apps/v1")],
    }
    if owner["metadata"].get("annotations"):
        metadata["annotations"] = dict(owner["metadata"]["annotations"])
    return {"metadata": metadata, "data": data, "revision": number}


def by_number(revision: Object) -> tuple[int, str, str]:
    """Sorts revisions, the oldest first."""
    metadata = revision["metadata"]
    return revision["revision"], metadata["creationTimestamp"], metadata["name"]


class RevisionHistory:
    """The revisions of one kind of workload."""

    def __init__(self, informer: Informer, client: ResourceClient, style: RevisionStyle) -> None:
        informer.add_index(BY_CONTROLLER_UID)
        self._informer, self._client, self._style = informer, client, style

    async def list(self, owner: Object, selector: Selector, can_adopt: CanAdopt) -> list[Object]:
        """An owner's revisions, the oldest first. Orphans that match are adopted."""
        metadata = owner["metadata"]
        owned = [
            each
            for each in self._informer.lister.by_index(BY_CONTROLLER_UID, metadata["uid"])
            if selector.matches(each["metadata"].get("labels") or {})
        ]
        orphans = [
            each
            for each in self._informer.lister.list(metadata["namespace"], selector)
            if controller_of(each) is None and not metadata.get("deletionTimestamp")
        ]
        if orphans:
            await can_adopt()
            owned += [await self._adopt(owner, each) for each in orphans]
        return sorted(owned, key=by_number)

    async def _adopt(self, owner: Object, orphan: Object) -> Object:
        """A strategic merge would write the data anew, in other bytes, and data may not change."""
        metadata = orphan["metadata"]
        references = [
            *(metadata.get("ownerReferences") or ()),
            controller_reference(owner, self._style.kind, "apps/v1"),
        ]
        patch = {"ownerReferences": references, "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        return await self._client.patch(metadata["namespace"], metadata["name"], {"metadata": patch}, "merge")

    async def ensure(self, owner: Object, known: Sequence[Object], collisions: int) -> tuple[Object, int]:
        """The revision of the owner's template, which is the newest now, and the count of collisions."""
        template = owner["spec"]["template"]
        if known and template_of(known[-1]) == template:
            return known[-1], collisions
        weight = len(orjson.dumps(template))
        equal = await weighed(weight * len(known), _with_template, known, template)
        number = known[-1]["revision"] + 1 if known else 1
        if equal and equal[-1] is known[-1]:
            return known[-1], collisions
        if equal:
            return await self._client.update({**equal[-1], "revision": number}), collisions
        return await self._create(owner, number, collisions, weight)

    async def _create(self, owner: Object, number: int, collisions: int, weight: int) -> tuple[Object, int]:
        while True:
            made = await weighed(weight, make_revision, owner, self._style, number, collisions)
            try:
                return await self._client.create(made), collisions
            except errors.AlreadyExists:
                found = await self._client.get(made["metadata"]["namespace"], made["metadata"]["name"])
            if await weighed(weight, same_template, template_of(found), owner["spec"]["template"]):
                return found, collisions
            collisions += 1

    async def drop_oldest(self, revisions: Sequence[Object], count: int) -> None:
        """Delete the first of these revisions, so many."""
        for each in revisions[: max(0, count)]:
            try:
                await self._client.delete(each["metadata"]["namespace"], each["metadata"]["name"])
            except errors.NotFound:
                continue
