"""Probes and lifecycle hooks: exactly one way to act, and sensible times."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.validation import NEGATIVE
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, invalid, not_supported, required
from pilothouse.machinery.names import check_http_header_name, check_port_name, check_port_number
from pilothouse.machinery.objects import Object

_ACTIONS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_SCHEMES: Final = ("HTTP", "HTTPS")
_PROTOCOLS: Final = ("HTTP1", "HTTP2")
_GRPC_MODES: Final = ("Plaintext", "TLS")
_COUNTS: Final = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_LINUX_SIGNALS: Final = [
    "ABRT", "ALRM", "BUS", "CHLD", "CLD", "CONT", "FPE", "HUP", "ILL", "INT", "IO", "IOT", "KILL", "PIPE", "POLL",
    "PROF", "PWR", "QUIT", "SEGV", "STKFLT", "STOP", "SYS", "TERM", "TRAP", "TSTP", "TTIN", "TTOU", "URG", "USR1",
    "USR2", "VTALRM", "WINCH", "XCPU", "XFSZ", "RTMIN", "RTMAX",
]  # fmt: skip
_REAL_TIME_SIGNALS: Final = [f"RTMIN+{n}" for n in range(1, 16)] + [f"RTMAX-{n}" for n in range(1, 15)]
_SIGNALS: Final = {
    "linux": tuple(sorted(f"SIG{name}" for name in _LINUX_SIGNALS + _REAL_TIME_SIGNALS)),
    "windows": ("SIGKILL", "SIGTERM"),
}


def validate_probes(container: Object, grace: int | None, path: Path, errs: list[FieldError]) -> None:
    """Errors of a container's three probes."""
    for name in _PROBES:
        probe = container.get(name)
        if probe is None:
            continue
        where = path.child(name)
        _validate_probe(probe, grace, where, errs)
        if name == "readinessProbe":
            if "terminationGracePeriodSeconds" in probe:
                why = "must not be set for readinessProbes"
                value = probe["terminationGracePeriodSeconds"]
                errs.append(invalid(where.child("terminationGracePeriodSeconds"), value, why))
        elif probe.get("successThreshold", 0) != 1:
            errs.append(invalid(where.child("successThreshold"), probe.get("successThreshold", 0), "must be 1"))


def _validate_probe(probe: Object, grace: int | None, path: Path, errs: list[FieldError]) -> None:
    _validate_handler(probe, grace, path, errs)
    errs += [invalid(path.child(name), probe[name], NEGATIVE) for name in _COUNTS if probe.get(name, 0) < 0]
    own = probe.get("terminationGracePeriodSeconds")
    if own is not None and own <= 0:
        errs.append(invalid(path.child("terminationGracePeriodSeconds"), own, "must be greater than 0"))


def validate_lifecycle(
    lifecycle: Object, grace: int | None, system: str | None, path: Path, errs: list[FieldError]
) -> None:
    """Errors of a container's hooks; ``system`` is the name of the pod's operating system, None if it has none."""
    for name in ("postStart", "preStop"):
        hook = lifecycle.get(name)
        if hook is not None:
            _validate_handler(hook, grace, path.child(name), errs)
    signal = lifecycle.get("stopSignal")
    if signal is not None:
        if system is None:
            why = "may not be set for containers with empty `spec.os.name`"
            errs.append(forbidden(path.child("stopSignal"), why))
        elif system in _SIGNALS and signal not in _SIGNALS[system]:
            errs.append(not_supported(path.child("stopSignal"), signal, _SIGNALS[system]))


def _validate_handler(handler: Object, grace: int | None, path: Path, errs: list[FieldError]) -> None:
    chosen = ""
    for name in _ACTIONS:
        if name in handler:
            if chosen:
                errs.append(forbidden(path.child(name), "may not specify more than 1 handler type"))
                continue
            chosen = name
            _validate_action(name, handler[name], grace, path.child(name), errs)
    if not chosen:
        errs.append(required(path, "must specify a handler type"))


def _validate_action(name: str, action: Object, grace: int | None, path: Path, errs: list[FieldError]) -> None:
    if name == "exec":
        if not action.get("command"):
            errs.append(required(path.child("command"), ""))
    elif name == "httpGet":
        _validate_http_get(action, path, errs)
    elif name == "sleep":
        seconds = action.get("seconds", 0)
        if grace is not None and not 0 <= seconds <= grace:
            why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            errs.append(invalid(path, seconds, why))
    else:
        validate_port(action.get("port", 0), path, errs)
        mode = action.get("mode")
        if mode is not None and mode not in _GRPC_MODES:
            errs.append(not_supported(path.child("mode"), mode, _GRPC_MODES))


def _validate_http_get(action: Object, path: Path, errs: list[FieldError]) -> None:
    if not action.get("path"):
        errs.append(required(path.child("path"), ""))
    validate_port(action.get("port", 0), path, errs)
    scheme = action.get("scheme", "")
    if scheme not in _SCHEMES:
        errs.append(not_supported(path.child("scheme"), scheme, _SCHEMES))
    for header in action.get("httpHeaders") or ():
        name = header.get("name", "")
        errs += (invalid(path.child("httpHeaders"), name, message) for message in check_http_header_name(name))
    protocol = action.get("protocol")
    if protocol is None:
        return
    if protocol not in _PROTOCOLS:
        errs.append(not_supported(path.child("protocol"), protocol, _PROTOCOLS))
    elif protocol == "HTTP2" and scheme != "HTTP":
        errs.append(invalid(path.child("protocol"), protocol, "is only supported with HTTP (H2C)"))
    elif protocol == "HTTP2" and action.get("host"):
        errs.append(invalid(path.child("host"), action["host"], 'must be empty when `protocol` is "HTTP2"'))


def validate_port(port: int | str, path: Path, errs: list[FieldError]) -> None:
    """A port by number or by its name in the container; ``path`` is the action's."""
    if isinstance(port, str):
        errs += (invalid(path.child("port"), port, message) for message in check_port_name(port))
    elif not 1 <= port <= 65535:
        errs += (invalid(path.child("port"), port, message) for message in check_port_number(port))
