"""The patches that webhooks answer with."""

from __future__ import annotations

from typing import Any

import orjson

from pilothouse.admission.webhooks.failures import CallFailed
from pilothouse.admission.webhooks.reviews import JSON_PATCH, Verdict
from pilothouse.machinery import errors, go_json, json_patch, large_json
from pilothouse.machinery.go_quote import quote


def decode_patch(hook: str, verdict: Verdict) -> list[Any]:
    """The operations of a patch, none if there is no patch; raises CallFailed."""
    if not verdict.patch:
        return []
    try:
        value = large_json.loads(verdict.patch)
        return list(json_patch.decode(value, limit=len(verdict.patch)))  # kube-apiserver counts only those of clients
    except orjson.JSONDecodeError:
        why = go_json.explain(verdict.patch)
    except errors.StatusError as error:
        why = error.message
    raise CallFailed(hook, f"received undecodable patch in webhook response: {why}")


def apply_patch(hook: str, verdict: Verdict, obj: Any, operations: list[Any]) -> Any:
    """The patched object; the one given stays as it is. Raises the 500 for a patch that does not fit."""
    if verdict.patch_type != JSON_PATCH:
        raise CallFailed(hook, f"unsupported patch type {quote(verdict.patch_type)}")
    try:
        return json_patch.apply(obj, operations)
    except json_patch.JsonPatchError as error:
        raise errors.internal_error(str(error)) from None
