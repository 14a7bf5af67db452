"""One container of a simulated pod: waiting, running or terminated, and what a kubelet would report of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final

from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import Instant, format_time
from pilothouse.simulation.nodes.behaviour import Behaviour

WAITING: Final = "waiting"
RUNNING: Final = "running"
TERMINATED: Final = "terminated"
_FIRST_BACKOFF: Final = 10.0
_MOST_BACKOFF: Final = 300.0


class Container:
    """The life of one container, run after run. Times are seconds of a monotonic clock."""

    def __init__(self, spec: Object, pod_uid: str, behaviour: Behaviour) -> None:
        self.spec, self.name, self.behaviour = spec, str(spec["name"]), behaviour
        self.state = WAITING
        self.reason, self.message = "ContainerCreating", ""
        self.restarts = 0
        self.exit_code = 0
        self.start_at: float | None = None
        self.ends_at: float | None = None
        self.up_at = 0.0
        """When its startup probe has succeeded."""
        self.ready_at: float | None = None
        self.dies_at: float | None = None
        """When its liveness probe has failed too often."""
        self.started: Instant | None = None
        self.finished: Instant | None = None
        self._ending: tuple[float, int] | None = None
        self._last: dict[str, Any] | None = None
        self._pod_uid = pod_uid
        self._failed_pulls = 0

    @property
    def is_sidecar(self) -> bool:
        """An init container that goes on beside the others."""
        return self.spec.get("restartPolicy") == "Always"

    @property
    def has_run(self) -> bool:
        """Whether it was started at least once."""
        return self.started is not None

    @property
    def container_id(self) -> str:
        """The id of the present run, or the last one."""
        text = f"{self._pod_uid}/{self.name}/{self.restarts}"
        return f"simulated://{hashlib.sha256(text.encode()).hexdigest()}"

    def is_ready(self, now: float) -> bool:
        """Whether it runs and its probes would succeed."""
        return self.state == RUNNING and self.ready_at is not None and self.ready_at <= now

    def plan_start(self, now: float, delay: float) -> None:
        """Start after a while."""
        if self.start_at is None:
            self.start_at = now + delay

    def fail_pull(self, now: float) -> None:
        """The image is not there; look again later, ever more rarely."""
        self._failed_pulls += 1
        image = self.spec.get("image") or ""
        if self._failed_pulls == 1:
            self.reason = "ErrImagePull"
            self.message = f'failed to pull and unpack image "{image}": not found'
        else:
            self.reason, self.message = "ImagePullBackOff", f'Back-off pulling image "{image}"'
        self.start_at = now + min(_MOST_BACKOFF, _FIRST_BACKOFF * 2 ** (self._failed_pulls - 1))

    def start(self, now: float, instant: Instant, rng: Callable[[], float]) -> None:
        """Run, until what was planned for this run happens."""
        if self.state == TERMINATED:
            self._last = self._terminated()
            self.restarts += 1
        self.state, self.reason, self.message = RUNNING, "", ""
        self.started, self.finished, self.start_at = instant, None, None
        self._ending = self.behaviour.ending(self.restarts, rng)
        self.ends_at = None if self._ending is None else now + self._ending[0]
        self.up_at = now + self._startup_delay()
        self.ready_at = None if self.behaviour.unready else now + self._readiness_delay()
        self.dies_at = self._death(now)

    def end(self, instant: Instant, exit_code: int | None = None, reason: str = "") -> None:
        """The process is over: as planned, or with this code."""
        planned = 0 if self._ending is None else self._ending[1]
        self.exit_code = planned if exit_code is None else exit_code
        self.state, self.finished = TERMINATED, instant
        self.reason = reason or ("Completed" if self.exit_code == 0 else "Error")
        self.ends_at = self.ready_at = self.dies_at = None

    def back_off(self, now: float) -> None:
        """Wait before the next run, longer after each one."""
        self.start_at = now + min(_MOST_BACKOFF, _FIRST_BACKOFF * 2**self.restarts)

    def _death(self, now: float) -> float | None:
        probe = self.spec.get("livenessProbe")
        if probe is None or self.behaviour.unhealthy_after is None:
            return None
        failures = int(probe.get("failureThreshold") or 3) - 1
        return now + self.behaviour.unhealthy_after + failures * float(probe.get("periodSeconds") or 10)

    def _startup_delay(self) -> float:
        return float((self.spec.get("startupProbe") or {}).get("initialDelaySeconds") or 0)

    def _readiness_delay(self) -> float:
        probe = self.spec.get("readinessProbe") or {}
        initial = float(probe.get("initialDelaySeconds") or 0) + self._startup_delay()
        return max(initial, self.behaviour.ready_after)

    def status(self, now: float, pod_name: str) -> dict[str, Any]:
        """The ContainerStatus."""
        image = self.spec.get("image") or ""
        was_pulled = self.has_run
        status: dict[str, Any] = {
            "name": self.name,
            "state": self._state(now, pod_name),
            "lastState": self._last_state(now),
            "ready": self._is_reported_ready(now),
            "restartCount": self.restarts,
            "image": image,
            "imageID": f"{image}@sha256:{hashlib.sha256(image.encode()).hexdigest()}" if was_pulled else "",
            "started": self.state == RUNNING and self.up_at <= now,
        }
        if was_pulled:
            status["containerID"] = self.container_id
            resources = self.spec.get("resources") or {}
            status["resources"] = resources
            if resources.get("requests"):
                status["allocatedResources"] = resources["requests"]
        return status

    def _is_reported_ready(self, now: float) -> bool:
        return self.is_ready(now)

    def _is_backing_off(self, now: float) -> bool:
        return self.state == TERMINATED and self.start_at is not None and self.start_at > now

    def _state(self, now: float, pod_name: str) -> dict[str, Any]:
        if self._is_backing_off(now) and self.start_at is not None:
            seconds = int(min(_MOST_BACKOFF, _FIRST_BACKOFF * 2**self.restarts))
            text = f"back-off {seconds}s restarting failed container={self.name} pod={pod_name}"
            return {"waiting": {"reason": "CrashLoopBackOff", "message": text}}
        if self.state == RUNNING and self.started is not None:
            return {"running": {"startedAt": format_time(self.started)}}
        if self.state == TERMINATED:
            return {"terminated": self._terminated()}
        waiting = {"reason": self.reason}
        return {"waiting": {**waiting, "message": self.message} if self.message else waiting}

    def _last_state(self, now: float) -> dict[str, Any]:
        if self._is_backing_off(now):
            return {"terminated": self._terminated()}
        return {} if self._last is None else {"terminated": self._last}

    def _terminated(self) -> dict[str, Any]:
        found: dict[str, Any] = {"exitCode": self.exit_code, "reason": self.reason, "containerID": self.container_id}
        if self.started is not None:
            found["startedAt"] = format_time(self.started)
        if self.finished is not None:
            found["finishedAt"] = format_time(self.finished)
        return found
