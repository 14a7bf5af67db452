"""In what a resource differs from most others, by theme: switches that ``registry/rest`` and the verbs ask.

Each default is what holds for most kinds, so a strategy names only what is special about its own.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UpdateRules:
    """What an update may do beyond changing the object that it read."""

    allow_create: bool = False
    """A PUT to a name that is free creates the object."""
    allow_unconditional: bool = True
    """An update need not say which resourceVersion it builds on."""


@dataclass(frozen=True, slots=True)
class GenerationRules:
    """What ``metadata.generation`` counts."""

    counted: bool = False
    """The server counts changes of the spec."""
    counts_empty: bool = False
    """A list or map that is given as empty is a change, as it is to a comparison of bare memory.
    Empty bytes are none: they are stored as such."""
    counts_gated: bool = False
    """Fields of features that are off are a change, although they are not kept."""
    any_value: bool = False
    """A field may hold now a boolean, now a number, so that values must be compared as they are written."""


@dataclass(frozen=True, slots=True)
class MetadataRules:
    """How metadata is judged, and in which order its errors are listed."""

    standard_finalizers: bool = True
    """Finalizers must be qualified or the system's own, as for most built-in kinds."""
    judged_last: bool = False
    """The rules for any object's metadata come after ``validate``, and only if that finds nothing."""
    free_names: bool = False
    """``validate_name`` takes anything; then a name need only fit into a path, if nothing else is wrong."""
    judges_prefix_on_update: bool = False
    """Updates too hold metadata.generateName to ``validate_name``; elsewhere it need only fit into a path."""
    adds_letters: bool = True
    """A generateName gets random letters at its end; otherwise it is the name (addresses)."""
    repeats_errors: bool = False
    """An error found twice is listed twice, as for the few kinds of which no rules are declared."""


@dataclass(frozen=True, slots=True)
class DeletionRules:
    """What deleting does with dependents, with objects that cannot be read, and what it answers."""

    orphans_by_default: bool = False
    """Deleting without a policy orphans dependents (Job)."""
    collects_garbage: bool = True
    """Deletion can cascade at all; events lose cascading finalizers."""
    begins_by_policy: bool = True
    """An object that begins its deletion itself gets the finalizer of the policy at once."""
    deletes_unread: bool = True
    """An object that cannot be read can be deleted for all that; a few kinds never could."""
    returns_deleted: bool = False
    """DELETE answers with the object instead of a Status."""
