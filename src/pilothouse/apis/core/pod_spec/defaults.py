"""What the server fills in where a pod spec says nothing.

Pods get more than the templates of workloads do: ``default_pod`` adds requests from limits, service links and host
ports, which must not show up in every Deployment. All functions work in place and change nothing a second time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pilothouse.apis.core.pod_spec.images import default_pull_policy
from pilothouse.apis.core.pod_spec.traversal import containers_of
from pilothouse.machinery import quantity
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.emptied import Emptied

_DEFAULT_MODE: Final = 0o644
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_STATUS_LISTS: Final = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
_MODE_SOURCES: Final = ("secret", "configMap", "downwardAPI", "projected")
_rounded: dict[str, str] = {}
_ROUNDED_LIMIT: Final = 8192


def default_pod(pod: Object, *, with_protocols: bool = False) -> None:
    """Everything a pod gets; HTTP probes get a protocol where that feature is on."""
    spec = pod["spec"]
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0:
        spec["terminationGracePeriodSeconds"] = 1
    host_network = spec.get("hostNetwork")
    for key in ("containers", "initContainers"):
        for container in spec.get(key) or ():
            _default_requests(container)
            if host_network:
                for port in container.get("ports") or ():
                    if not port.get("hostPort") and port.get("containerPort"):
                        port["hostPort"] = port["containerPort"]
    spec.setdefault("enableServiceLinks", True)
    default_pod_spec(spec)
    if with_protocols:
        _default_protocols(spec)
    status = pod.get("status")
    if status:
        default_pod_status(status)


def default_pod_template(template: Object) -> None:
    """Everything a workload's template gets."""
    default_pod_spec(template["spec"])


def default_pod_spec(spec: Object) -> None:
    """What pods and templates share."""
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    setdefault = spec.setdefault
    setdefault("dnsPolicy", "ClusterFirst")
    setdefault("restartPolicy", "Always")
    setdefault("securityContext", {})
    setdefault("terminationGracePeriodSeconds", 30)
    setdefault("schedulerName", "default-scheduler")
    volumes = spec.get("volumes")
    if volumes:
        for volume in volumes:
            default_volume(volume)
    for container in containers_of(spec):
        default_container(container)
    if "overhead" in spec:
        round_resource_list(spec["overhead"])
    if "resources" in spec:
        round_resources(spec["resources"])


def default_container(container: Object) -> None:
    """A container of any sort."""
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = default_pull_policy(container.get("image", ""))
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or ():
        source = variable.get("valueFrom")
        if source:
            _default_field_ref(source)
            if "fileKeyRef" in source:
                source["fileKeyRef"].setdefault("optional", False)
    resources = container.get("resources")
    if resources:
        round_resources(resources)
    for key in _PROBES:
        if key in container:
            _default_probe(container[key])
    lifecycle = container.get("lifecycle")
    if lifecycle:
        for key in ("postStart", "preStop"):
            if key in lifecycle and "httpGet" in lifecycle[key]:
                _default_http_get(lifecycle[key]["httpGet"])


def _default_protocols(spec: Object) -> None:
    for container in containers_of(spec):
        handlers = [container.get(key) for key in _PROBES]
        handlers += [(container.get("lifecycle") or {}).get(key) for key in ("postStart", "preStop")]
        for handler in handlers:
            if handler and "httpGet" in handler:
                handler["httpGet"].setdefault("protocol", "HTTP1")


def _default_requests(container: Object) -> None:
    """What is limited but not requested is requested at its limit."""
    resources = container.get("resources")
    limits = resources.get("limits") if resources else None
    if resources and limits:
        requests = resources.get("requests")
        if requests is None:
            resources["requests"] = dict(limits)
        else:
            for name, limit in limits.items():
                requests.setdefault(name, limit)
    elif isinstance(resources, Emptied) and "limits" in resources.empty and not resources.get("requests"):
        resources.empty["requests"] = {}


def _default_probe(probe: Object) -> None:
    probe.setdefault("timeoutSeconds", 1)
    probe.setdefault("periodSeconds", 10)
    probe.setdefault("successThreshold", 1)
    probe.setdefault("failureThreshold", 3)
    if "httpGet" in probe:
        _default_http_get(probe["httpGet"])
    if "grpc" in probe and probe["grpc"].get("service") is None:
        probe["grpc"]["service"] = ""


def _default_http_get(action: Object) -> None:
    action.setdefault("path", "/")
    action.setdefault("scheme", "HTTP")


def _default_field_ref(holder: Object) -> None:
    if "fieldRef" in holder:
        holder["fieldRef"].setdefault("apiVersion", "v1")


def default_volume(volume: Object) -> None:
    """A volume of any sort; without a source it is an empty directory."""
    if len(volume) == 1:
        volume["emptyDir"] = {}
        return
    for key in _MODE_SOURCES:
        if key in volume:
            volume[key].setdefault("defaultMode", _DEFAULT_MODE)
    for key, default in _SOURCE_DEFAULTS.items():
        if key in volume:
            for name, value in default.items():
                volume[key].setdefault(name, value)
    if "image" in volume:
        image = volume["image"]
        if "pullPolicy" not in image:
            image["pullPolicy"] = default_pull_policy(image.get("reference", ""))
    if "downwardAPI" in volume:
        _default_files(volume["downwardAPI"].get("items") or ())
    if "projected" in volume:
        for source in volume["projected"].get("sources") or ():
            _default_projection(source)
    template = volume["ephemeral"].get("volumeClaimTemplate") if "ephemeral" in volume else None
    if template:
        default_claim_spec(template["spec"])


_SOURCE_DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}


def _default_projection(source: Object) -> None:
    if "downwardAPI" in source:
        _default_files(source["downwardAPI"].get("items") or ())
    if "serviceAccountToken" in source:
        source["serviceAccountToken"].setdefault("expirationSeconds", 3600)


def _default_files(files: Iterable[Object]) -> None:
    for file in files:
        _default_field_ref(file)


def default_claim_spec(spec: Object) -> None:
    """The spec of a persistent volume claim."""
    spec.setdefault("volumeMode", "Filesystem")
    if spec.get("resources"):
        round_resources(spec["resources"])


def default_pod_status(status: Object) -> None:
    """Keep the address and the list of addresses together; the single address wins."""
    address, addresses = status.get("podIP"), status.get("podIPs")
    if address and (not addresses or addresses[0].get("ip") != address):
        status["podIPs"] = [{"ip": address}]
    elif addresses and not address and addresses[0].get("ip"):
        status["podIP"] = addresses[0]["ip"]
    for key in _STATUS_LISTS:
        for container in status.get(key) or ():
            round_resource_list(container.get("allocatedResources"))
            round_resources(container.get("resources"))
    round_resource_list(status.get("allocatedResources"))
    round_resources(status.get("resources"))


def round_resources(resources: Object | None) -> None:
    """Requests and limits in thousandths at least."""
    if resources:
        limits, requests = resources.get("limits"), resources.get("requests")
        if limits:
            round_resource_list(limits)
        if requests:
            round_resource_list(requests)


def round_resource_list(amounts: dict[str, str] | None) -> None:
    """Amounts below a thousandth are rounded up, here and wherever else kube-apiserver holds a resource list."""
    if amounts:
        for name, text in amounts.items():
            rounded = _rounded.get(text)
            if rounded is None:
                rounded = _round(text)
            if rounded is not text:
                amounts[name] = rounded


def _round(text: str) -> str:
    rounded = str(quantity.parse(text).round_up(quantity.MILLI))
    if rounded == text:
        rounded = text
    if len(text) <= 32:
        if len(_rounded) >= _ROUNDED_LIMIT:
            _rounded.clear()
        _rounded[text] = rounded
    return rounded
