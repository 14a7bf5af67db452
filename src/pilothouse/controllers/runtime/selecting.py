"""Who selects an object by its labels: services and their pods, workloads and orphans that they may adopt.

Whoever selects by labels that objects must have is looked up by one of these; all others of the namespace are asked.
Where very many select the same object, they are told in turns with whatever else there is to do, and once for all
objects of the same labels that came meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from pilothouse.controllers.runtime.indexer import Key, key_of
from pilothouse.controllers.runtime.informer import Informer
from pilothouse.machinery.objects import Object
from pilothouse.net.work_turns import work_turns

_BY_REQUIRED_LABEL: Final = "by a label that it requires"
_FEW: Final = 100
"""So many selectors are tried in a tenth of a millisecond."""
Labels = tuple[tuple[str, str], ...]


def match_labels(obj: Object) -> Mapping[str, Any]:
    """The labels that a workload's selector requires."""
    return (obj["spec"].get("selector") or {}).get("matchLabels") or {}


def plain_selector(obj: Object) -> Mapping[str, Any]:
    """The same of kinds whose selector is labels and nothing else."""
    return obj["spec"].get("selector") or {}


class Selecting:
    """The objects of one kind, which must have the reading ``SELECTOR``."""

    def __init__(
        self,
        informer: Informer,
        add: Callable[[Key], None],
        required: Callable[[Object], Mapping[str, Any]] = match_labels,
        *,
        empty_selects: bool = False,
    ) -> None:
        """``add`` is told the keys; ``required`` gives the labels that are required in any case."""
        self._lister, self._add, self._empty_selects = informer.lister, add, empty_selects
        self._waiting: dict[tuple[str, Labels], None] = {}
        self._left: Iterator[Object] = iter(())
        self._own: Mapping[str, str] = {}
        self._is_called = False
        informer.add_index(_BY_REQUIRED_LABEL, lambda obj: [_value(obj["metadata"]["namespace"], required(obj))])

    def wake(self, obj: Object) -> None:
        """Tell whoever selects the object, at once where they are few."""
        own = obj["metadata"].get("labels") or {}
        if not own and not self._empty_selects:
            return
        namespace = obj["metadata"]["namespace"]
        if self._count(namespace, own) <= _FEW:
            self._tell(self._candidates(namespace, own), own)
            return
        self._waiting[namespace, tuple(sorted(own.items()))] = None
        self._go_on()

    def _values(self, namespace: str, own: Mapping[str, str]) -> Iterator[str]:
        yield _value(namespace, {})
        for name, value in own.items():
            yield _value(namespace, {name: value})

    def _count(self, namespace: str, own: Mapping[str, str]) -> int:
        count = self._lister.count
        return sum(count(_BY_REQUIRED_LABEL, value) for value in self._values(namespace, own))

    def _candidates(self, namespace: str, own: Mapping[str, str]) -> Iterator[Object]:
        for value in self._values(namespace, own):
            yield from self._lister.by_index(_BY_REQUIRED_LABEL, value)

    def _tell(self, candidates: Iterator[Object], own: Mapping[str, str]) -> None:
        for each in candidates:
            selector = self._lister.selector_of(each)
            if (self._empty_selects or not selector.empty) and selector.matches(own):
                self._add(key_of(each))

    def _go_on(self) -> None:
        if not self._is_called:
            self._is_called = True
            work_turns().call(self._tell_some)

    def _tell_some(self) -> None:
        self._is_called = False
        batch = list(islice(self._left, _FEW))
        self._tell(iter(batch), self._own)
        if len(batch) < _FEW:
            if not self._waiting:
                return
            namespace, own = next(iter(self._waiting))
            del self._waiting[namespace, own]
            self._own = dict(own)
            self._left = self._candidates(namespace, self._own)
        self._go_on()


def _value(namespace: str, required: Mapping[str, Any]) -> str:
    for name, value in required.items():
        return f"{namespace}/{name}={value}"
    return f"{namespace}/"
