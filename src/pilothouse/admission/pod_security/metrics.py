"""What is counted about Pod Security: evaluations, requests that are exempt, and errors on the way."""

from __future__ import annotations

from typing import Final

from pilothouse.admission.pod_security.policies import LATEST, PRIVILEGED, LevelVersion
from pilothouse.endpoints.admission import CREATE, UPDATE, Attributes
from pilothouse.machinery.metrics import Counter, Instrument

ENFORCE: Final = "enforce"
AUDIT: Final = "audit"
WARN: Final = "warn"
_REQUEST: Final = ("request_operation", "resource", "subresource")
_KINDS: Final = {"pods": "pod", "namespaces": "namespace"}
_ANYTHING: Final = LevelVersion(PRIVILEGED)


class PodSecurityMetrics:
    """The instruments of one server. The most frequent series are there from the start."""

    def __init__(self) -> None:
        self._evaluations = Counter(
            "pod_security_evaluations_total",
            "[ALPHA] Evaluations of policies.",
            ("decision", "policy_level", "policy_version", "mode", *_REQUEST),
        )
        self._exemptions = Counter("pod_security_exemptions_total", "[ALPHA] Requests that are exempt.", _REQUEST)
        self._errors = Counter(
            "pod_security_errors_total", "[ALPHA] Errors that kept policies out.", ("fatal", *_REQUEST)
        )
        usual = ("allow", PRIVILEGED, "latest", ENFORCE)
        self.unrestricted = {
            (operation, ""): self._evaluations.labelled(*usual, operation.lower(), "pod", "")
            for operation in (CREATE, UPDATE)
        }
        """Pods in namespaces without demands, by operation and subresource."""
        for operation in ("create", "update"):
            for kind in ("pod", "controller"):
                self._exemptions.labelled(operation, kind, "")

    def evaluated(self, attributes: Attributes, policy: LevelVersion, mode: str, newest: int, *, allowed: bool) -> None:
        """A pod was held against a policy."""
        version = "latest"
        if policy.minor != LATEST and policy.level != PRIVILEGED:
            version = f"v1.{policy.minor}" if policy.minor <= newest else "future"
        decision = "allow" if allowed else "deny"
        self._evaluations.labelled(decision, policy.level, version, mode, *_request(attributes)).value += 1

    def passed_unrestricted(self, attributes: Attributes) -> None:
        """A pod was let into a namespace without demands."""
        found = self.unrestricted.get((attributes.operation, attributes.subresource))
        if found is None:
            self.evaluated(attributes, _ANYTHING, ENFORCE, LATEST, allowed=True)
        else:
            found.value += 1

    def exempt(self, attributes: Attributes) -> None:
        """A request was let through unseen."""
        self._exemptions.labelled(*_request(attributes)).value += 1

    def failed(self, attributes: Attributes, *, fatal: bool) -> None:
        """Something kept the policy from being applied as it should."""
        self._errors.labelled("true" if fatal else "false", *_request(attributes)).value += 1

    def instruments(self) -> tuple[Instrument, ...]:
        """All of them."""
        return self._evaluations, self._exemptions, self._errors


def _request(attributes: Attributes) -> tuple[str, str, str]:
    resource = attributes.resource
    kind = _KINDS.get(resource.resource, "controller") if not resource.group else "controller"
    return attributes.operation.lower(), kind, attributes.subresource
