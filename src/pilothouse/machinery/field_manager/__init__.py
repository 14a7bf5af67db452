"""Field management: keeping ``metadata.managedFields`` on every write, and server-side apply.

    tracking       FieldManager: update (create, update, patch) and apply
    answers        what webhooks convert for managers of other versions
    entries        managedFields as stored, and as sets by manager
    capping        no more than ten update entries
    conflicts      the 409 answer of an apply
    last_applied   getting along with client-side apply
    scale          fields of the scale subresource
    names          the manager's name out of a User-Agent
    timestamps     a write that changes nothing but times changes nothing

Objects that come in are never changed; those that come out share parts with them.
"""

from pilothouse.machinery.field_manager.entries import InvalidEntries, check_entries
from pilothouse.machinery.field_manager.names import manager_of
from pilothouse.machinery.field_manager.timestamps import keep_times
from pilothouse.machinery.field_manager.tracking import FieldManager, FieldsOfNew, entries_of, named, set_entries

__all__ = [
    "FieldManager",
    "FieldsOfNew",
    "InvalidEntries",
    "check_entries",
    "entries_of",
    "keep_times",
    "manager_of",
    "named",
    "set_entries",
]
