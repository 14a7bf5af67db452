"""Since when the use of legacy service account tokens is tracked."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.cluster.hooks.hook import HookContext, PostStartHook
from pilothouse.controlplane.bootstrap.token_tracking import TokenTracking


def legacy_tokens(context: HookContext) -> Iterator[PostStartHook]:
    """A config map that says it."""
    tracking = TokenTracking(context.store("", "configmaps"), context.informers)
    yield PostStartHook(
        "start-legacy-token-tracking-controller", "the controller of the token tracking config map", tracking.start
    )
