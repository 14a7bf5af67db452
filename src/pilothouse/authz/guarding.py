"""Admission of a group whose writes need more than the plug-ins: theirs first, then a check of the final object.

The check comes after mutation and before validation, where kube-apiserver's strategies ask whether the user may.
"""

from __future__ import annotations

from pilothouse.endpoints.admission import CREATE, UPDATE, Admission, Attributes


class Guard:
    """The admission of the server, then ``check``."""

    def __init__(self, admission: Admission | None) -> None:
        self._admission = admission

    async def check(self, attributes: Attributes) -> None:
        """Let a create or an update pass, or raise the StatusError that refuses it."""

    def handles(self, operation: str) -> bool:
        """Creates and updates always."""
        if operation in (CREATE, UPDATE):
            return True
        return self._admission is not None and self._admission.handles(operation)

    async def admit(self, attributes: Attributes) -> None:
        """Run the mutating plug-ins, then the check. Raises StatusError."""
        admission = self._admission
        if admission is not None and admission.handles(attributes.operation):
            await admission.admit(attributes)
        if attributes.operation in (CREATE, UPDATE):
            await self.check(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Run the validating plug-ins."""
        admission = self._admission
        if admission is not None and admission.handles(attributes.operation):
            await admission.validate(attributes)
