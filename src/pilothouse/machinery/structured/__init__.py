"""Structured merge: which fields an object has, what changed, who owns what, and merging by schema.

    paths           one step of a path, as text: ``f:spec``, ``k:{"name":"web"}``, ``v:"x"``, ``i:0``
    field_sets      sets of paths in the form of ``fieldsV1``, and their algebra
    shapes          how a schema looks to merging: scalars, lists with keys, maps, atoms
    validation      does a value fit its shape
    descriptions    the set of fields that a value has
    comparison      the sets of fields added, modified and removed between two values
    merging         laying one value over another
    removal         taking fields out of a value
    ownership       updates and applies on behalf of managers

Everything is pure: no function changes its arguments, and results may share parts with them.
"""

from pilothouse.machinery.structured.comparison import Comparison, compare
from pilothouse.machinery.structured.descriptions import describe, to_field_set
from pilothouse.machinery.structured.merging import merge
from pilothouse.machinery.structured.removal import extract_items, remove_items
from pilothouse.machinery.structured.shapes import DEDUCED, Shape, shape_of
from pilothouse.machinery.structured.validation import SchemaMismatch, validate

__all__ = [
    "DEDUCED",
    "Comparison",
    "SchemaMismatch",
    "Shape",
    "compare",
    "describe",
    "extract_items",
    "merge",
    "remove_items",
    "shape_of",
    "to_field_set",
    "validate",
]
