"""Definitions that go away take nothing new."""

from __future__ import annotations

from pilothouse.endpoints.admission import CREATE, Admission, Attributes
from pilothouse.machinery import errors


class ForbidCreate:
    """Admission to a definition that goes away: nothing new may come."""

    def __init__(self, delegate: Admission | None) -> None:
        self._delegate = delegate

    def handles(self, operation: str) -> bool:
        return operation == CREATE or (self._delegate is not None and self._delegate.handles(operation))

    async def admit(self, attributes: Attributes) -> None:
        _forbid(attributes)
        if self._delegate is not None:
            await self._delegate.admit(attributes)

    async def validate(self, attributes: Attributes) -> None:
        _forbid(attributes)
        if self._delegate is not None:
            await self._delegate.validate(attributes)


def _forbid(attributes: Attributes) -> None:
    if attributes.operation == CREATE:
        why = "create not allowed while custom resource definition is terminating"
        raise errors.forbidden(attributes.resource.group_resource, attributes.name, why)
