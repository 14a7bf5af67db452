"""Pods made from templates and deleted again, with the events that tell of it."""

from __future__ import annotations

from typing import Any

from pilothouse.controllers.runtime.client import Client
from pilothouse.controllers.runtime.events import EventRecorder
from pilothouse.controllers.runtime.indexer import copy_of
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object

_LONGEST_PREFIX = 63 - 5


def pod_from_template(template: Object, owner: Object, reference: dict[str, Any]) -> Object:
    """A pod of the template, controlled by the owner; its name is generated from the owner's.

    Fields of its spec may be replaced; what is in them is the template's.
    """
    metadata = template.get("metadata") or {}
    name = owner["metadata"]["name"]
    kept: dict[str, Any] = {part: copy_of(metadata[part]) for part in ("labels", "annotations") if metadata.get(part)}
    if metadata.get("finalizers"):
        kept["finalizers"] = list(metadata["finalizers"])
    prefix = f"{name}-" if len(name) < _LONGEST_PREFIX else name
    made = {**kept, "generateName": prefix, "namespace": owner["metadata"]["namespace"], "ownerReferences": [reference]}
    return {"metadata": made, "spec": dict(template["spec"])}


def is_namespace_terminating(error: errors.StatusError) -> bool:
    """Whether something could not be created because its namespace is on its way out."""
    return errors.has_cause(error, "NamespaceTerminating")


class PodControl:
    """Creates and deletes pods for owners of one kind, and tells of it on the owner."""

    def __init__(self, client: Client, events: EventRecorder) -> None:
        self._pods = client.of("", "v1", "pods")
        self._events = events

    async def create(self, pod: Object, owner: Object) -> Object:
        """Create a pod."""
        try:
            created = await self._pods.create(pod)
        except errors.StatusError as error:
            if not is_namespace_terminating(error):
                self._events.event(owner, "Warning", "FailedCreate", f"Error creating: {error.message}")
            raise
        self._events.event(owner, "Normal", "SuccessfulCreate", f"Created pod: {created['metadata']['name']}")
        return created

    async def delete(self, namespace: str, name: str, owner: Object, uid: str = "") -> Object:
        """Delete a pod; the answer. Raises NotFound if there is none."""
        try:
            answer = await self._pods.delete(namespace, name, uid=uid)
        except errors.NotFound:
            raise
        except errors.StatusError as error:
            self._events.event(owner, "Warning", "FailedDelete", f"Error deleting: {error.message}")
            raise
        self._events.event(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {name}")
        return answer
