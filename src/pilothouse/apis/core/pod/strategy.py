"""Strategies of pods and of the subresources that write them: status, ephemeralcontainers, resize."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.core.pod.columns import COLUMNS
from pilothouse.apis.core.pod.comparison import same
from pilothouse.apis.core.pod.known_specs import KnownSpecs, fingerprint
from pilothouse.apis.core.pod.preparation import (
    adopt_app_armor,
    complete_pod_resources,
    extend_selectors,
    gate_scheduling,
)
from pilothouse.apis.core.pod.qos import compute_qos
from pilothouse.apis.core.pod.resize import keep_only_resizes, validate_resize
from pilothouse.apis.core.pod.status import keep_reported_fields, validate_status_update
from pilothouse.apis.core.pod.validation import validate_ephemeral_update, validate_new_pod, validate_pod_update
from pilothouse.apis.core.pod_spec.annotations import drop_legacy_annotations
from pilothouse.apis.core.pod_spec.defaults import default_pod
from pilothouse.apis.core.pod_spec.options import PodValidationOptions, new_options, options_for, options_for_status
from pilothouse.apis.core.pod_spec.warnings import pod_warnings
from pilothouse.apis.strategy import Column, Context, NamespaceLabels, Strategy
from pilothouse.apis.strategy_rules import DeletionRules, MetadataRules
from pilothouse.machinery.addresses import warn_about_ip
from pilothouse.machinery.field_errors import FieldError
from pilothouse.machinery.names import check_dns1123_label
from pilothouse.machinery.objects import Object
from pilothouse.machinery.shared_texts import share_text

_COMPLETED: Final = {"PodLevelResources", "PodLevelResourcesFixDefaulting"}
_RESET_METADATA: Final = (
    "deletionTimestamp", "generation", "selfLink", "labels", "annotations", "finalizers", "ownerReferences",
)  # fmt: skip


def _count_generation(pod: Object, old: Object) -> None:
    if not same(pod["spec"], old["spec"]):
        pod["metadata"]["generation"] = pod["metadata"].get("generation", 0) + 1


def _reset_metadata(pod: Object, old: Object) -> None:
    """Leave all metadata that users set as it was."""
    for key in _RESET_METADATA:
        if key in old["metadata"]:
            pod["metadata"][key] = old["metadata"][key]
        else:
            pod["metadata"].pop(key, None)


_ENDED: Final[dict[str, list[dict[str, Any]]]] = {
    phase: [{"type": "Completed", "status": "True", "reason": phase, "message": message}]
    for phase, message in (("Succeeded", "The pod has completed successfully."), ("Failed", "The pod failed."))
}


class _AnyPodStrategy(Strategy):
    """What holds for pods whichever way they are written."""

    def default(self, obj: Object) -> None:
        default_pod(obj, with_protocols="H2CContainerProbe" in self.gates)
        if "PodLevelResourcesFixDefaulting" not in self.gates and "PodLevelResources" in self.gates:
            complete_pod_resources(obj["spec"], only_requests=True)

    def options(self, old: Object) -> PodValidationOptions:
        """How to judge a pod that replaces this one."""
        return options_for(self.gates, old["spec"], old["metadata"], is_pod=True)

    def row_conditions(self, obj: Object) -> list[dict[str, Any]]:
        """Pods that have run to their end are marked, so that clients can leave them out."""
        return _ENDED.get((obj.get("status") or {}).get("phase", ""), [])


class PodStatusStrategy(_AnyPodStrategy):
    """Writes through ``/status``."""

    reset_fields = ("spec", "metadata.deletionTimestamp", "metadata.ownerReferences")

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        metadata = obj["metadata"]
        obj["spec"] = old["spec"]
        metadata.pop("deletionTimestamp", None)
        # Old kubelets garble owner references.
        if "ownerReferences" in old["metadata"]:
            metadata["ownerReferences"] = old["metadata"]["ownerReferences"]
        else:
            metadata.pop("ownerReferences", None)
        keep_reported_fields(obj.setdefault("status", {}), old.get("status") or {})
        drop_legacy_annotations(metadata)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs: list[FieldError] = []
        validate_status_update(obj, old, errs, options_for_status(self.gates, old["spec"], old["metadata"]))
        return errs

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        warnings: list[str] = []
        for kind in ("podIPs", "hostIPs"):
            for position, address in enumerate((obj.get("status") or {}).get(kind) or ()):
                warnings += warn_about_ip(f"status.{kind}[{position}].ip", address.get("ip", ""))
        return warnings


class PodEphemeralContainersStrategy(_AnyPodStrategy):
    """Writes through ``/ephemeralcontainers``."""

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        added = obj["spec"].get("ephemeralContainers")
        obj["spec"], obj["status"] = dict(old["spec"]), old.get("status") or {}
        obj["spec"].pop("ephemeralContainers", None)
        if added:
            obj["spec"]["ephemeralContainers"] = added
        _reset_metadata(obj, old)
        _count_generation(obj, old)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs: list[FieldError] = []
        validate_ephemeral_update(obj, old, errs, self.options(old))
        return errs


class PodResizeStrategy(_AnyPodStrategy):
    """Writes through ``/resize``."""

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        before = obj["spec"]
        keep_only_resizes(obj, old, self.gates)
        if obj["spec"] is not before:
            _reset_metadata(obj, old)
        if obj["spec"].get("resources") is not None and self.gates >= _COMPLETED:
            complete_pod_resources(obj["spec"])
        drop_legacy_annotations(obj["metadata"])
        _count_generation(obj, old)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs: list[FieldError] = []
        validate_resize(obj, old, errs, self.options(old))
        return errs


class PodStrategy(_AnyPodStrategy):
    """Pods. Only the spec counts generations, and updates may change little of it."""

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    deletion_rules = DeletionRules(returns_deleted=True)
    columns: ClassVar[tuple[Column, ...]] = COLUMNS
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {
        "status": PodStatusStrategy,
        "ephemeralcontainers": PodEphemeralContainersStrategy,
        "resize": PodResizeStrategy,
    }
    field_labels: ClassVar[frozenset[str]] = frozenset(
        {
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        }
    )
    field_sources = field_labels | {"spec.serviceAccount"}

    def __init__(self, gates: frozenset[str] | None = None, labels_of: NamespaceLabels | None = None) -> None:
        super().__init__(gates, labels_of)
        self._valid_specs, self._quiet_specs = KnownSpecs(), KnownSpecs()

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        metadata, spec = obj["metadata"], obj["spec"]
        metadata["generation"] = 1
        obj["status"] = {"phase": "Pending"}
        drop_legacy_annotations(metadata)
        gate_scheduling(obj, ctx.now)
        extend_selectors(spec, metadata.get("labels") or {}, self.gates)
        adopt_app_armor(obj, ctx.warnings)
        if self.gates >= _COMPLETED:
            complete_pod_resources(spec)
        obj["status"]["qosClass"] = compute_qos(spec, self.gates)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        known = ctx.noted = fingerprint(obj)
        if known is not None and known in self._valid_specs:
            return []
        errs: list[FieldError] = []
        validate_new_pod(obj, errs, new_options(self.gates, is_pod=True))
        if known is not None and not errs:
            self._valid_specs.add(known)
        return errs

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        obj["status"] = old.get("status") or {}
        spec, before = obj["spec"], old["spec"]
        if "resources" not in spec and "resources" in before and "PodLevelResourcesFixDefaulting" in self.gates:
            # Clients that do not know resources of the whole pod must not clear them.
            spec["resources"] = before["resources"]
        drop_legacy_annotations(obj["metadata"])
        _count_generation(obj, old)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs: list[FieldError] = []
        validate_pod_update(obj, old, errs, self.options(old))
        return errs

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        known: bytes | None = ctx.noted
        is_quiet = known is not None and known in self._quiet_specs
        warnings = [] if is_quiet else pod_warnings(obj)
        if known is not None and not is_quiet and not warnings:
            self._quiet_specs.add(known)
        if messages := check_dns1123_label(obj["metadata"].get("name", "")):
            why = (
                "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is"
                f" recommended: [{' '.join(messages)}]"
            )
            warnings.insert(0, f"metadata.name: {why}")
        return warnings

    def check_graceful_delete(self, ctx: Context, obj: Object, grace: int | None) -> int | None:
        spec = obj["spec"]
        period = grace if grace is not None else spec.get("terminationGracePeriodSeconds", 0)
        # Nobody has to be told to stop a pod that no node runs.
        if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
            period = 0
        return 1 if period < 0 else period

    def fields(self, obj: Object) -> dict[str, str]:
        spec, status = obj["spec"], obj.get("status") or {}
        addresses = status.get("podIPs") or ()
        return {
            "spec.nodeName": share_text(spec.get("nodeName", "")),
            "spec.restartPolicy": share_text(spec.get("restartPolicy", "")),
            "spec.schedulerName": share_text(spec.get("schedulerName", "")),
            "spec.serviceAccountName": share_text(spec.get("serviceAccountName", "")),
            "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
            "status.phase": share_text(status.get("phase", "")),
            "status.podIP": addresses[0].get("ip", "") if addresses else "",
            "status.nominatedNodeName": status.get("nominatedNodeName", ""),
        }

    def convert_field(self, name: str, value: str) -> tuple[str, str]:
        return super().convert_field("spec.nodeName" if name == "spec.host" else name, value)
