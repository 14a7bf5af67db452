"""How a mutation fails; apart from the mutations, which bring the whole expression language along."""

from __future__ import annotations


class MutationError(Exception):
    """A mutation that cannot be made."""
