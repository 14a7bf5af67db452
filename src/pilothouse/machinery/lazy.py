"""Attributes that are made, and modules that are imported, when first asked for.

``functools.cached_property`` does the same under a lock that all objects of a class share: while a worker's thread
makes one attribute for a second, the event loop would wait to make another. Here two threads that ask at the same time
both make the value, and one of the two stays. So it must not matter which.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class Lazy(Generic[T]):
    """See the module's docstring. Made by ``lazy``."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Lazy[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> Lazy[T] | T:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._make(instance)
        return value


def lazy(make: Callable[[Any], T]) -> Lazy[T]:
    """Decorates a method: from the first use on, its result is the attribute."""
    return Lazy(make)


def imported(place: str) -> Any:
    """What a module has under a name, both written with dots: ``package.module.name``."""
    module, _, name = place.rpartition(".")
    return getattr(import_module(module), name)
