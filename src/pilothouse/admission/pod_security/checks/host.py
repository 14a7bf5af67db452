"""Checks of the baseline level that keep pods away from the host: its namespaces, paths, ports and processes."""

from __future__ import annotations

from typing import Any

from pilothouse.admission.pod_security.checks.wording import (
    Metadata,
    Spec,
    Violation,
    containers,
    contexts,
    counted,
    named,
    pod_context,
    quoted,
    setters,
)


def check_host_namespaces(metadata: Metadata, spec: Spec) -> Violation | None:
    used = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field)]
    return ("host namespaces", ", ".join(used)) if used else None


def check_host_paths(metadata: Metadata, spec: Spec) -> Violation | None:
    volumes = [each.get("name", "") for each in spec.get("volumes") or () if each.get("hostPath") is not None]
    return ("hostPath volumes", named("volume", volumes)) if volumes else None


def check_host_ports(metadata: Metadata, spec: Spec) -> Violation | None:
    bad: list[str] = []
    ports: set[str] = set()
    for name, container in containers(spec):
        used = {str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")}
        if used:
            bad.append(name)
            ports |= used
    if not bad:
        return None
    uses = "uses" if len(bad) == 1 else "use"
    return "hostPort", f"{named('container', bad)} {uses} {counted('hostPort', ports)} {', '.join(sorted(ports))}"


def check_host_probes(metadata: Metadata, spec: Spec) -> Violation | None:
    bad: set[str] = set()
    hosts: set[str] = set()
    for name, container in containers(spec):
        lifecycle = container.get("lifecycle") or {}
        handlers = [container.get(probe) for probe in ("livenessProbe", "readinessProbe", "startupProbe")]
        found = _hosts(*handlers, lifecycle.get("postStart"), lifecycle.get("preStop"))
        if found:
            bad.add(name)
            hosts |= found
    if not bad:
        return None
    uses = "uses" if len(bad) == 1 else "use"
    what = counted("probe or lifecycle host", hosts)
    return "probe or lifecycle host", f"{named('container', sorted(bad))} {uses} {what} {quoted(sorted(hosts))}"


def _hosts(*handlers: dict[str, Any] | None) -> set[str]:
    return {
        host
        for handler in handlers
        if handler
        for action in ("httpGet", "tcpSocket")
        if (host := (handler.get(action) or {}).get("host"))
    }


def check_privileged(metadata: Metadata, spec: Spec) -> Violation | None:
    bad = [name for name, context in contexts(spec) if context.get("privileged")]
    return ("privileged", f"{named('container', bad)} must not set securityContext.privileged=true") if bad else None


def check_windows_host_process(metadata: Metadata, spec: Spec) -> Violation | None:
    bad = [name for name, context in contexts(spec) if (context.get("windowsOptions") or {}).get("hostProcess")]
    pod = bool((pod_context(spec).get("windowsOptions") or {}).get("hostProcess"))
    if not bad and not pod:
        return None
    return "hostProcess", f"{setters(pod, bad)} must not set securityContext.windowsOptions.hostProcess=true"
