"""The objects an informer knows, found by name, by namespace, by label selector, or through an index.

An index is a function from an object to the values it is found under: the uid of its owner, the node it runs on. A
reading is what somebody makes of an object and asks for again and again, such as its selector whenever a pod changes:
it is made once for each state, of a long one aside. All of them are in step with each other at any time.

What is handed out is shared by everybody in the process and must not be changed: whoever wants to change an object
works on a ``copy_of`` it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import orjson

from pilothouse.machinery import labels, large_json
from pilothouse.machinery.labels import Selector
from pilothouse.machinery.objects import Object

logger = logging.getLogger(__name__)
IndexFunction = Callable[[Object], Iterable[str]]
Reader = Callable[[Object], Any]
Objects = list[Object]
Key = tuple[str, str]
"""Namespace and name; the namespace of what has none is empty."""
Names = list[str]

BY_OWNER_UID: Final = "by-owner-uid"
BY_CONTROLLER_UID: Final = "by-controller-uid"
PODS_BY_NODE: Final = "pods-by-node"
ORPHANS: Final = "orphans"
"""Objects that nobody controls, by their namespace."""
BY_LABEL: Final = "by-label"
"""Objects by each of their labels; ``list`` with a selector then looks at those alone that have one of its labels."""
SELECTOR: Final = "selector"
"""The reading of what ``spec.selector`` selects."""


def copy_of(obj: Object) -> Object:
    """A deep copy, which its maker may change."""
    copied: Object = large_json.loads(orjson.dumps(obj))
    return copied


def working_copy(obj: Object) -> Object:
    """A copy whose metadata and status may be changed, and the fields of its spec replaced.

    What is in those fields, and who manages what, is shared: a template may be a megabyte, and no controller changes
    anything in it.
    """
    metadata = dict(obj["metadata"])
    managed = metadata.pop("managedFields", None)
    made = {**obj, "metadata": copy_of(metadata)}
    if managed is not None:
        made["metadata"]["managedFields"] = managed
    if obj.get("spec") is not None:
        made["spec"] = dict(obj["spec"])
    if obj.get("status") is not None:
        made["status"] = copy_of(obj["status"])
    return made


def key_of(obj: Object) -> Key:
    """Where an object is found."""
    metadata = obj["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def owner_uids(obj: Object) -> list[str]:
    """The uids of all owners."""
    return [reference["uid"] for reference in obj["metadata"].get("ownerReferences") or ()]


def controller_uids(obj: Object) -> list[str]:
    """The uid of the owner that controls the object; nothing for an orphan."""
    references = obj["metadata"].get("ownerReferences") or ()
    return [reference["uid"] for reference in references if reference.get("controller")]


def node_names(pod: Object) -> list[str]:
    """The node a pod is bound to; nothing for one that waits to be scheduled."""
    name = (pod.get("spec") or {}).get("nodeName")
    return [name] if name else []


def namespaces_of_orphans(obj: Object) -> Iterable[str]:
    """The namespace of an object that nobody controls."""
    if not any(owner.get("controller") for owner in obj["metadata"].get("ownerReferences") or ()):
        yield obj["metadata"].get("namespace") or ""


def labels_of(obj: Object) -> list[str]:
    """The labels, each with the namespace."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace") or ""
    return [_label(namespace, name, value) for name, value in (metadata.get("labels") or {}).items()]


def _label(namespace: str, name: str, value: str) -> str:
    return f"{namespace}/{name}={value}"


WELL_KNOWN: Final[dict[str, IndexFunction]] = {
    BY_OWNER_UID: owner_uids,
    BY_CONTROLLER_UID: controller_uids,
    PODS_BY_NODE: node_names,
    ORPHANS: namespaces_of_orphans,
    BY_LABEL: labels_of,
}


def read_selector(obj: Object) -> Selector:
    """The selector of a workload or a budget; one that cannot be understood selects nothing."""
    try:
        return labels.from_object(obj["spec"].get("selector"))
    except labels.SelectorError:
        return labels.NOTHING


def read_selected_labels(obj: Object) -> Selector:
    """The selector of a kind that names labels and nothing else; without any it selects everything."""
    return labels.from_labels(obj["spec"].get("selector") or {})


class Lister:
    """Reads objects, from any thread. Lists are new at each call; what is in them is shared."""

    def __init__(self) -> None:
        self._namespaces: dict[str, dict[str, Object]] = {}
        self._functions: dict[str, IndexFunction] = {}
        self._indexes: dict[str, dict[str, dict[Key, Object]]] = {}
        self._readers: dict[str, Reader] = {}
        self._readings: dict[str, dict[Key, tuple[Object, Any]]] = {}
        self._unfinished: dict[str, Callable[[], None]] = {}
        """Indexes that do not have all objects so far, with what finishes them."""

    def __len__(self) -> int:
        return sum(map(len, self._namespaces.values()))

    def __iter__(self) -> Iterator[Object]:
        return iter(self.list())

    def get(self, namespace: str, name: str) -> Object | None:
        """One object; None if there is none."""
        return self._namespaces.get(namespace, {}).get(name)

    def list(self, namespace: str | None = None, selector: Selector | None = None) -> Objects:
        """All objects, or those of one namespace, or those that a label selector matches."""
        if namespace is not None and selector is not None and self._is_finished(BY_LABEL):
            found = self._candidates(namespace, selector)
        elif namespace is None:
            found = [obj for objects in list(self._namespaces.values()) for obj in list(objects.values())]
        else:
            found = list(self._namespaces.get(namespace, {}).values())
        if selector is None:
            return found
        matches = selector.matches
        return [obj for obj in found if matches(obj["metadata"].get("labels") or {})]

    def _candidates(self, namespace: str, selector: Selector) -> Objects:
        """The objects among which the selector's are: those with the rarest of the labels that it demands."""
        by_label = self._indexes[BY_LABEL]
        exact = ((each.key, each.values[0]) for each in selector.requirements if each.is_exact)
        sets = [by_label.get(_label(namespace, name, value), {}) for name, value in exact]
        if sets:
            return list(min(sets, key=len).values())
        return list(self._namespaces.get(namespace, {}).values())

    def by_index(self, index: str, value: str) -> Objects:
        """The objects under a value of an index."""
        return list(self._index(index).get(value, {}).values())

    def count(self, index: str, value: str) -> int:
        """How many objects there are under a value of an index."""
        return len(self._index(index).get(value, ()))

    def index_values(self, index: str) -> set[str]:
        """The values under which an index has objects."""
        return set(self._index(index))

    def reading(self, name: str, obj: Object) -> Any:
        """What was made of an object under this name; of a state that is no longer the newest it is made anew."""
        found = self._readings[name].get(key_of(obj))
        return found[1] if found is not None and found[0] is obj else self._readers[name](obj)

    def selector_of(self, obj: Object) -> Selector:
        """The reading ``SELECTOR`` of an object."""
        selector: Selector = self.reading(SELECTOR, obj)
        return selector

    def namespaces(self) -> Names:
        """The namespaces of all objects; what has none is in the one without a name."""
        return [*self._namespaces]

    def names(self, namespace: str) -> Names:
        """The objects of one namespace."""
        return [*self._namespaces.get(namespace, ())]

    def _is_finished(self, index: str) -> bool:
        return index in self._indexes and index not in self._unfinished

    def _index(self, index: str) -> dict[str, dict[Key, Object]]:
        """An index with all objects: who cannot wait for it does the rest."""
        if index in self._unfinished:
            self._unfinished[index]()
        return self._indexes[index]


class Indexer(Lister):
    """Keeps objects, indexes and readings. For the informer alone."""

    def __init__(self) -> None:
        super().__init__()
        self._prepared: tuple[Object, dict[str, Any]] | None = None
        """What was made of the object that is put next."""

    def add_index(self, name: str, function: IndexFunction | None, finish: Callable[[], None]) -> bool:
        """Have an index of what is put from now on; well-known ones need no function. False if there is one already.

        What was put before is to be entered with ``enter``, and then ``finished`` to be called. Before that, whoever
        looks something up calls ``finish``, which enters what is left.
        """
        if name in self._functions:
            return False
        self._functions[name] = function or WELL_KNOWN[name]
        self._indexes[name] = {}
        self._unfinished[name] = finish
        return True

    def enter(self, name: str, obj: Object) -> None:
        """Have an object that was put before an index was added found by it."""
        self._enter(name, _values(name, self._functions[name], obj), obj)

    def finished(self, name: str) -> None:
        """All objects are in an index that was added."""
        self._unfinished.pop(name, None)

    def add_reading(self, name: str, reader: Reader) -> bool:
        """Make this of each object that is put from now on. False if it is made already.

        For what was put before, call ``read``; until then it is made for each who asks.
        """
        if name in self._readers:
            return False
        self._readings[name] = {}
        self._readers[name] = reader
        return True

    def read(self, name: str, obj: Object) -> None:
        """Make of an object that was put before what was added."""
        self._readings[name][key_of(obj)] = obj, self._readers[name](obj)

    def prepare(self, obj: Object) -> None:
        """Make all readings of an object that is put next. Runs in any thread."""
        self._prepared = obj, {name: reader(obj) for name, reader in tuple(self._readers.items())}

    def put(self, obj: Object) -> Object | None:
        """Take a new state of an object; the one before, if any."""
        self._read(obj)
        namespace, name = key_of(obj)
        objects = self._namespaces.setdefault(namespace, {})
        old = objects.get(name)
        objects[name] = obj
        for index, function in self._functions.items():
            values = _values(index, function, obj)
            if old is not None and (before := _values(index, function, old)) != values:
                self._leave(index, before, old)
            self._enter(index, values, obj)
        return old

    def remove(self, key: Key) -> Object | None:
        """Forget an object; the last state, if it was known."""
        namespace, name = key
        objects = self._namespaces.get(namespace, {})
        old = objects.pop(name, None)
        if old is None:
            return None
        if not objects:
            del self._namespaces[namespace]
        for readings in self._readings.values():
            readings.pop(key, None)
        for index, function in self._functions.items():
            self._leave(index, _values(index, function, old), old)
        return old

    def _read(self, obj: Object) -> None:
        prepared, self._prepared = self._prepared, None
        made = prepared[1] if prepared is not None and prepared[0] is obj else {}
        for name, reader in self._readers.items():
            self._readings[name][key_of(obj)] = obj, made[name] if name in made else reader(obj)

    def _enter(self, index: str, values: list[str], obj: Object) -> None:
        if values:
            found, key = self._indexes[index], key_of(obj)
            for value in values:
                found.setdefault(value, {})[key] = obj

    def _leave(self, index: str, values: list[str], obj: Object) -> None:
        found = self._indexes[index]
        for value in values:
            objects = found.get(value)
            if objects is not None:
                objects.pop(key_of(obj), None)
                if not objects:
                    del found[value]


def _values(index: str, function: IndexFunction, obj: Object) -> list[str]:
    """What an object is found under. One that the function cannot read is in no index, whoever else needs it."""
    try:
        return [*function(obj)]
    except Exception:
        logger.exception("index %s: cannot read %s/%s", index, *key_of(obj))
        return []
