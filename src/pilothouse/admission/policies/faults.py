"""How a mutation fails; apart from the mutations, which bring the whole expression language along."""

from __future__ import annotations


class MutationFault(Exception):
    """A mutation that cannot be made."""
