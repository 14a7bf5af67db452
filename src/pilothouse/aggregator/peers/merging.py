"""One discovery document out of those of several servers.

Groups, versions and resources are united; what one server says before another stays before it, and where nobody says
anything, names decide. Servers are gone through by their identities, so that every server of a cluster makes the same
document (and the same ETag) of the same answers. What several describe differently is described as by the first, with
the verbs and subresources of all.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

Document = dict[str, Any]
Merge = Callable[[Document, Document], Document]


def merge_groups(servers: Mapping[str, Sequence[Document]]) -> list[Document]:
    """The groups of all servers, given by their identities."""
    return _merge([list(servers[name]) for name in sorted(servers)], _group_name, _merge_group)


def merge_order(lists: Iterable[Sequence[str]]) -> list[str]:
    """All names, each after those that any of the lists has before it; by name where none says, or they disagree."""
    lists = list(lists)
    followers: dict[str, set[str]] = {name: set() for names in lists for name in names}
    for names in lists:
        if len(names) == len(followers) == len(set(names)):
            return list(names)
    before = dict.fromkeys(followers, 0)
    for names in lists:
        for name, following in pairwise(names):
            if following not in followers[name]:
                followers[name].add(following)
                before[following] += 1
    free = [name for name, count in before.items() if not count]
    heapq.heapify(free)
    ordered: list[str] = []
    while free:
        name = heapq.heappop(free)
        ordered.append(name)
        for following in followers[name]:
            before[following] -= 1
            if not before[following]:
                heapq.heappush(free, following)
    return ordered if len(ordered) == len(followers) else sorted(followers)


def _merge(lists: list[list[Document]], name_of: Callable[[Document], str], merge: Merge) -> list[Document]:
    merged: dict[str, Document] = {}
    for each in lists:
        for item in each:
            name = name_of(item)
            known = merged.get(name)
            merged[name] = item if known is None or known == item else merge(known, item)
    return [merged[name] for name in merge_order([[name_of(item) for item in each] for each in lists])]


def _group_name(group: Document) -> str:
    return str(group["metadata"].get("name", ""))


def _merge_group(first: Document, second: Document) -> Document:
    versions = [first.get("versions") or [], second.get("versions") or []]
    return {**first, "versions": _merge(versions, lambda version: str(version["version"]), _merge_version)}


def _merge_version(first: Document, second: Document) -> Document:
    resources = [first.get("resources") or [], second.get("resources") or []]
    return {**first, "resources": _merge(resources, lambda resource: str(resource["resource"]), _merge_resource)}


def _merge_resource(first: Document, second: Document) -> Document:
    merged = {**first, "verbs": sorted({*(first.get("verbs") or ()), *(second.get("verbs") or ())})}
    subresources = {
        sub["subresource"]: sub for each in (first, second) for sub in each.get("subresources") or () if sub
    }
    if subresources:
        merged["subresources"] = [subresources[name] for name in sorted(subresources)]
    return merged
