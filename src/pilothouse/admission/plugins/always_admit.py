"""AlwaysAdmit: says yes. Kept for configurations that name it."""

from __future__ import annotations

from pilothouse.admission.plugin import Plugin


class AlwaysAdmit(Plugin):
    """See the module's docstring."""

    name = "AlwaysAdmit"
