"""The library for people who write API servers of their own, to stand behind a Kubernetes API server or alone.

Everything named here is stable; everything else of the package may change. ``docs/writing-an-api-server.md`` shows how
it is used, ``examples/`` has whole servers.

    Group, Kind, Version          what is served
    Strategy, Column, Scale       rules of a kind, what tables show, the scale subresource
    Subresource, Computed         endpoints made by functions, with or without stored objects
    Plugin, Attributes            admission
    APIServer, Main               the server, and the API server that it stands behind
"""

from pilothouse.admission.plugin import Plugin
from pilothouse.admission.refusals import forbidden
from pilothouse.apis.strategy import Context
from pilothouse.endpoints.admission import CREATE, DELETE, UPDATE, Attributes
from pilothouse.library.api_server import APIServer
from pilothouse.library.computed import Computed, Query
from pilothouse.library.declarations import Column, Group, Kind, Scale, Strategy, Version
from pilothouse.library.main_server import Main
from pilothouse.library.schemas import schema_of
from pilothouse.library.subresources import Call, Subresource
from pilothouse.machinery import errors, field_errors
from pilothouse.machinery.field_errors import FieldError, Path
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.objects import Object
from pilothouse.machinery.quantity import parse as parse_quantity

__all__ = [
    "CREATE",
    "DELETE",
    "UPDATE",
    "APIServer",
    "Attributes",
    "Call",
    "Column",
    "Computed",
    "Context",
    "FieldError",
    "Group",
    "GroupResource",
    "Kind",
    "Main",
    "Object",
    "Path",
    "Plugin",
    "Query",
    "Scale",
    "Strategy",
    "Subresource",
    "Version",
    "errors",
    "field_errors",
    "forbidden",
    "parse_quantity",
    "schema_of",
]
