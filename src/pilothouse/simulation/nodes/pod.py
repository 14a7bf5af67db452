"""One pod on a simulated node: its containers in their order, restarts, deadlines, and the end.

``advance`` moves everything on to a moment and says when to look again; ``status`` is what a kubelet would report then.
Nothing here waits or talks to anybody, so that a test can play hours in an instant.

    admitted ─► init containers, one after the other ─► containers ─► all ended for good, or told to stop
                (sidecars stay)                          (restarted as the policy says)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from pilothouse.controllers.runtime.pods import condition_of
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import Instant, format_time
from pilothouse.simulation.nodes.behaviour import Rule, behaviour_of
from pilothouse.simulation.nodes.container import RUNNING, TERMINATED, WAITING, Container

_DEADLINE: Final = "Pod was active on the node longer than the specified deadline"
_KILLED: Final = 137
_TERMINATED_BY_SIGNAL: Final = 143
Moment = tuple[float, Instant]
"""Now, by the monotonic clock that waits are measured with and by the wall clock that others read."""


class Happening(NamedTuple):
    """Something that a kubelet would write an event about."""

    type: str
    reason: str
    message: str
    container: str = ""
    is_init: bool = False


class SimulatedPod:
    """One pod. ``pod`` is its newest state and is replaced when it changes."""

    def __init__(self, pod: Object, now: Moment, rules: Sequence[Rule], rng: Callable[[], float]) -> None:
        self.pod = pod
        self._rules, self._rng = rules, rng
        self._began, self._start_time = now
        self._init = [self._make(each) for each in pod["spec"].get("initContainers") or ()]
        self._main = [self._make(each) for each in pod["spec"]["containers"]]
        self._ephemeral: dict[str, Container] = {}
        self._stops_at: dict[str, float] = {}
        self._exits: dict[str, int] = {}
        self._reason = self._message = ""
        self._happenings: list[Happening] = []
        self._is_stopping = False
        self._transitions: dict[str, tuple[str, str]] = {}
        for condition in (pod.get("status") or {}).get("conditions") or ():
            self._transitions[condition["type"]] = (condition["status"], condition.get("lastTransitionTime") or "")

    @property
    def containers(self) -> tuple[Container, ...]:
        """All containers, with what is planned for each."""
        return self._all()

    def exited(self, container: str, exit_code: int) -> None:
        """The process that a container really is has ended."""
        self._exits[container] = exit_code

    def _make(self, spec: Object) -> Container:
        return Container(spec, self.pod["metadata"]["uid"], behaviour_of(self.pod, spec, self._rules))

    # Playing

    def advance(self, now: Moment) -> float | None:
        """Do all that is due; the moment at which something is due next, None if nothing is."""
        at, instant = now
        self._add_ephemeral()
        if self.pod["metadata"].get("deletionTimestamp"):
            self._stop_all(at)
        self._check_deadline(at)
        for container in self._all():
            self._end_if_due(container, at, instant)
        if not self._is_stopping:
            self._start_what_is_due(at, instant)
        return self._next(at)

    def _add_ephemeral(self) -> None:
        for spec in self.pod["spec"].get("ephemeralContainers") or ():
            if spec["name"] not in self._ephemeral:
                self._ephemeral[spec["name"]] = self._make(spec)

    def _end_if_due(self, container: Container, at: float, instant: Instant) -> None:
        if container.state != RUNNING:
            return
        if container.name in self._exits:
            container.end(instant, self._exits.pop(container.name))
            self._restart_if_due(container, at)
            return
        if container.dies_at is not None and container.dies_at <= at and not self._is_stopping:
            self._fail_liveness(container, at, instant)
            return
        stops_at = self._stops_at.get(container.name)
        if stops_at is not None and stops_at <= at:
            container.end(instant, self._stop_code(container))
        elif container.ends_at is not None and container.ends_at <= at:
            container.end(instant)
            self._restart_if_due(container, at)

    def _restart_if_due(self, container: Container, at: float) -> None:
        if not self._is_stopping and self._restarts(container):
            container.back_off(at)
            self._tell_back_off(container)

    def _fail_liveness(self, container: Container, at: float, instant: Instant) -> None:
        """Its liveness probe has failed often enough: it is killed, and started again if it may be."""
        self._tell(
            container, "Warning", "Unhealthy", "Liveness probe failed: the container is simulated to be unhealthy"
        )
        text = f"Container {container.name} failed liveness probe, will be restarted"
        self._tell(container, "Normal", "Killing", text)
        container.end(instant, _KILLED)
        self._restart_if_due(container, at)

    def _stop_code(self, container: Container) -> int:
        if container.behaviour.stop_delay > self._grace_seconds():
            return _KILLED
        return 0 if self._policy() == "Always" else _TERMINATED_BY_SIGNAL

    def _restarts(self, container: Container) -> bool:
        if container in self._ephemeral.values():
            return False
        own = container.spec.get("restartPolicy")
        for rule in container.spec.get("restartPolicyRules") or ():
            if rule.get("action") == "Restart" and _applies(rule.get("exitCodes") or {}, container.exit_code):
                return True
        policy = own or self._policy()
        if policy == "Always":
            return container not in self._init or container.is_sidecar or container.exit_code != 0
        return policy == "OnFailure" and container.exit_code != 0

    def _start_what_is_due(self, at: float, instant: Instant) -> None:
        for container in self._init:
            if not self._start_one(container, at, instant):
                return
        for container in (*self._main, *self._ephemeral.values()):
            self._start_one(container, at, instant)

    def _start_one(self, container: Container, at: float, instant: Instant) -> bool:
        """Bring one container on its way; whether the next init container may begin."""
        if container.state == WAITING:
            container.plan_start(at, container.behaviour.start_delay)
        if container.state != RUNNING and container.start_at is not None and container.start_at <= at:
            if container.behaviour.image_error:
                self._fail_pull(container, at)
            else:
                self._start_container(container, at, instant)
        if container.is_sidecar:
            return container.state == RUNNING
        return container.state == TERMINATED and container.exit_code == 0

    def _start_container(self, container: Container, at: float, instant: Instant) -> None:
        image = container.spec.get("image") or ""
        self._tell(container, "Normal", "Pulled", f'Container image "{image}" already present on machine')
        container.start(at, instant, self._rng)
        self._tell(container, "Normal", "Created", "Container created")
        self._tell(container, "Normal", "Started", "Container started")
        if container.behaviour.unready and container.spec.get("readinessProbe"):
            text = "Readiness probe failed: the container is simulated to be unready"
            self._tell(container, "Warning", "Unhealthy", text)
        self._end_if_due(container, at, instant)

    def _fail_pull(self, container: Container, at: float) -> None:
        container.fail_pull(at)
        text = container.message
        if container.reason == "ErrImagePull":
            image = container.spec.get("image") or ""
            self._tell(container, "Normal", "Pulling", f'Pulling image "{image}"')
            self._tell(container, "Warning", "Failed", f'Failed to pull image "{image}": {text}')
            self._tell(container, "Warning", "Failed", "Error: ErrImagePull")
        else:
            self._tell(container, "Normal", "BackOff", text)
            self._tell(container, "Warning", "Failed", "Error: ImagePullBackOff")

    def _check_deadline(self, at: float) -> None:
        seconds = self.pod["spec"].get("activeDeadlineSeconds")
        if seconds is not None and not self._reason and at - self._began >= seconds and not self.is_over:
            self._reason, self._message = "DeadlineExceeded", _DEADLINE
            self._stop_all(at)

    def _stop_all(self, at: float) -> None:
        if self._is_stopping:
            return
        self._is_stopping = True
        for container in self._all():
            container.start_at = None
            if container.state == RUNNING:
                self._tell(container, "Normal", "Killing", f"Stopping container {container.name}")
                if container.behaviour.run:
                    continue
                self._stops_at[container.name] = at + min(container.behaviour.stop_delay, self._grace_seconds())

    @property
    def grace_seconds(self) -> float:
        """How long containers may take to stop."""
        return self._grace_seconds()

    def _grace_seconds(self) -> float:
        given = self.pod["metadata"].get("deletionGracePeriodSeconds")
        return float(given if given is not None else self.pod["spec"].get("terminationGracePeriodSeconds", 30))

    def _next(self, at: float) -> float | None:
        times: list[float] = []
        for container in self._all():
            if container.state == RUNNING:
                due = (container.ends_at, container.dies_at, self._stops_at.get(container.name))
                times += (each for each in due if each is not None)
                probed = (container.up_at, container.ready_at)
                times += (each for each in probed if each is not None and each > at)
            elif container.start_at is not None and not self._is_stopping:
                times.append(container.start_at)
        seconds = self.pod["spec"].get("activeDeadlineSeconds")
        if seconds is not None and not self._reason and not self.is_over:
            times.append(self._began + seconds)
        return min(times, default=None)

    # What it looks like

    @property
    def has_stopped(self) -> bool:
        """Whether it was told to stop and nothing runs any more."""
        return self._is_stopping and not any(each.state == RUNNING for each in self._all())

    @property
    def is_over(self) -> bool:
        """Whether it has ended for good."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def phase(self) -> str:
        """The phase, from the states of the containers."""
        if self._reason:
            return "Failed"
        if self._failed_init():
            return "Failed"
        main = self._main
        if any(self._is_pending(each) for each in self._init) or any(not each.has_run for each in main):
            ended = self._is_stopping and not any(each.state == RUNNING for each in self._all())
            return "Failed" if ended and any(each.has_run for each in self._all()) else "Pending"
        if any(each.state == RUNNING for each in main):
            return "Running"
        if not self._is_stopping and any(self._restarts(each) for each in main):
            return "Running"
        return "Succeeded" if all(each.exit_code == 0 for each in main) else "Failed"

    def _is_pending(self, container: Container) -> bool:
        if container.is_sidecar:
            return not container.has_run
        return container.state != TERMINATED or container.exit_code != 0

    def _failed_init(self) -> bool:
        return any(
            each.state == TERMINATED and each.exit_code != 0 and not each.is_sidecar and not self._restarts(each)
            for each in self._init
        )

    def take_happenings(self) -> list[Happening]:
        """What has happened since this was asked last."""
        taken, self._happenings = self._happenings, []
        return taken

    def status(self, now: Moment, host_ip: str, pod_ip: str) -> dict[str, Any]:
        """The PodStatus, without what others write."""
        at, instant = now
        name = f"{self.pod['metadata']['name']}_{self.pod['metadata']['namespace']}({self.pod['metadata']['uid']})"
        generation = self.pod["metadata"].get("generation")
        status: dict[str, Any] = {
            "phase": self.phase,
            "conditions": self._conditions(at, instant, generation),
            "hostIP": host_ip,
            "hostIPs": [{"ip": host_ip}],
            "startTime": format_time(self._start_time),
            "containerStatuses": [each.status(at, name) for each in self._main],
        }
        if generation is not None:
            status["observedGeneration"] = generation
        if any(each.has_run for each in self._all()):
            address = host_ip if self.pod["spec"].get("hostNetwork") else pod_ip
            status |= {"podIP": address, "podIPs": [{"ip": address}]}
        if self._init:
            status["initContainerStatuses"] = [self._init_status(each, at, name) for each in self._init]
        if self._ephemeral:
            status["ephemeralContainerStatuses"] = [each.status(at, name) for each in self._ephemeral.values()]
        if self._reason:
            status |= {"reason": self._reason, "message": self._message}
        return status

    def _init_status(self, container: Container, at: float, name: str) -> dict[str, Any]:
        status = container.status(at, name)
        if not container.is_sidecar:
            status["ready"] = container.state == TERMINATED and container.exit_code == 0
        if container.state == WAITING and container.start_at is None:
            status["state"] = {"waiting": {"reason": "PodInitializing"}}
        return status

    def _conditions(self, at: float, instant: Instant, generation: int | None) -> list[dict[str, Any]]:
        over = self.is_over
        started = any(each.has_run for each in self._all()) and not self.has_stopped
        waiting_init = [each.name for each in self._init if self._is_pending(each)]
        unready = [each.name for each in (*self._sidecars(), *self._main) if not each.is_ready(at)]
        found = [
            self._condition("PodReadyToStartContainers", started and not over),
            self._condition("Initialized", not waiting_init, *_not_initialized(waiting_init, self.phase)),
            self._ready_condition(unready),
            self._condition("ContainersReady", not unready, *_not_ready(unready, self.phase)),
            self._condition("PodScheduled", True),
        ]
        for condition in found:
            self._date(condition, instant)
            if generation is not None:
                condition["observedGeneration"] = generation
        return found

    def _ready_condition(self, unready: Sequence[str]) -> dict[str, Any]:
        if unready:
            return self._condition("Ready", False, *_not_ready(unready, self.phase))
        missing = [gate["conditionType"] for gate in self.pod["spec"].get("readinessGates") or ()]
        missing = [each for each in missing if (condition_of(self.pod, each) or {}).get("status") != "True"]
        if missing:
            listed = ", ".join(
                f'corresponding condition of pod readiness gate "{each}" does not exist.' for each in missing
            )
            return self._condition("Ready", False, "ReadinessGatesNotReady", listed)
        return self._condition("Ready", True)

    def _condition(self, type: str, holds: bool, reason: str = "", message: str = "") -> dict[str, Any]:
        condition: dict[str, Any] = {"type": type, "status": "True" if holds else "False", "lastProbeTime": None}
        if not holds and reason:
            condition |= {"reason": reason, **({"message": message} if message else {})}
        return condition

    def _date(self, condition: dict[str, Any], instant: Instant) -> None:
        """Say since when the condition holds."""
        known = self._transitions.get(condition["type"])
        if known is None or known[0] != condition["status"] or not known[1]:
            known = self._transitions[condition["type"]] = (condition["status"], format_time(instant))
        condition["lastTransitionTime"] = known[1]

    def _tell(self, container: Container, type: str, reason: str, message: str) -> None:
        is_init = container in self._init
        self._happenings.append(Happening(type, reason, message, container.name, is_init))

    def _tell_back_off(self, container: Container) -> None:
        metadata = self.pod["metadata"]
        where = f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"
        text = f"Back-off restarting failed container {container.name} in pod {where}"
        self._tell(container, "Warning", "BackOff", text)

    def _policy(self) -> str:
        return str(self.pod["spec"].get("restartPolicy") or "Always")

    def _sidecars(self) -> Iterable[Container]:
        return (each for each in self._init if each.is_sidecar)

    def _all(self) -> tuple[Container, ...]:
        return (*self._init, *self._main, *self._ephemeral.values())


def _applies(rule: Object, exit_code: int) -> bool:
    listed = exit_code in (rule.get("values") or ())
    return listed if rule.get("operator") == "In" else not listed


def _not_ready(names: Sequence[str], phase: str) -> tuple[str, str]:
    if phase == "Succeeded":
        return "PodCompleted", ""
    if phase == "Failed":
        return "PodFailed", ""
    return "ContainersNotReady", f"containers with unready status: [{' '.join(names)}]"


def _not_initialized(names: Sequence[str], phase: str) -> tuple[str, str]:
    if phase == "Failed":
        return "PodFailed", ""
    return "ContainersNotInitialized", f"containers with incomplete status: [{' '.join(names)}]"
