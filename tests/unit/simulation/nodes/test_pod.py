from __future__ import annotations

from typing import Any

from pilothouse.machinery.times import Instant
from pilothouse.simulation.nodes.pod import SimulatedPod


class Played:
    """A pod and a clock."""

    def __init__(self, **spec: Any) -> None:
        self.at = 0.0
        spec.setdefault("containers", [{"name": "c", "image": "i"}])
        metadata = {"name": "p", "namespace": "d", "uid": "u", "generation": 1}
        self.obj = {"metadata": {**metadata, "annotations": spec.pop("annotations", {})}, "spec": spec}
        self.pod = SimulatedPod(self.obj, self._now(), (), lambda: 0.5)
        self.next = self.pod.advance(self._now())

    def _now(self) -> tuple[float, Instant]:
        return self.at, Instant(1_800_000_000 + int(self.at), 0)

    def to(self, at: float) -> dict[str, Any]:
        while self.next is not None and self.next <= at:
            self.at = self.next
            self.next = self.pod.advance(self._now())
        self.at = at
        self.next = self.pod.advance(self._now())
        return self.status

    @property
    def status(self) -> dict[str, Any]:
        return self.pod.status(self._now(), "10.0.0.1", "10.1.0.1")

    def condition(self, type: str) -> dict[str, Any]:
        found: dict[str, Any] = next(each for each in self.status["conditions"] if each["type"] == type)
        return found

    def delete(self, grace: int = 30) -> None:
        self.obj["metadata"] |= {"deletionTimestamp": "now", "deletionGracePeriodSeconds": grace}
        self.next = self.pod.advance(self._now())


def container(command: str, **more: Any) -> dict[str, Any]:
    return {"name": more.pop("name", "c"), "image": "i", "command": command.split(), **more}


def test_init_containers_run_one_after_the_other() -> None:
    played = Played(
        initContainers=[container("sleep 1", name="a"), container("sleep 2", name="b")],
        containers=[container("nginx")],
    )
    assert played.status["phase"] == "Pending"
    assert played.status["initContainerStatuses"][1]["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert played.condition("Initialized")["message"] == "containers with incomplete status: [a b]"
    played.to(1)
    assert "running" in played.status["initContainerStatuses"][1]["state"]
    assert played.to(3)["phase"] == "Running"
    assert played.condition("Ready")["status"] == "True"


def test_sidecars_stay_and_do_not_keep_a_pod_from_ending() -> None:
    sidecar = container("nginx", name="side", restartPolicy="Always")
    played = Played(initContainers=[sidecar], containers=[container("sleep 5")], restartPolicy="Never")
    assert played.status["phase"] == "Running"
    assert played.status["initContainerStatuses"][0]["ready"]
    assert played.to(5)["phase"] == "Succeeded"


def test_crash_loop_backs_off_ever_longer() -> None:
    played = Played(containers=[container("false")])
    waiting = played.status["containerStatuses"][0]["state"]["waiting"]
    assert waiting["reason"] == "CrashLoopBackOff" and "back-off 10s" in waiting["message"]
    status = played.to(10)["containerStatuses"][0]
    assert status["restartCount"] == 1 and "back-off 20s" in status["state"]["waiting"]["message"]
    assert played.to(29)["containerStatuses"][0]["restartCount"] == 1
    assert played.to(30)["containerStatuses"][0]["restartCount"] == 2
    assert played.status["phase"] == "Running"


def test_restart_policies() -> None:
    assert Played(containers=[container("false")], restartPolicy="Never").status["phase"] == "Failed"
    assert Played(containers=[container("false")], restartPolicy="OnFailure").status["phase"] == "Running"
    assert Played(containers=[container("true")], restartPolicy="OnFailure").status["phase"] == "Succeeded"
    rules = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]
    restarted = container("sh -c", restartPolicy="Never", restartPolicyRules=rules)
    restarted["command"] = ["sh", "-c", "exit 42"]
    assert Played(containers=[restarted], restartPolicy="Never").status["phase"] == "Running"


def test_a_failed_init_container_fails_the_pod() -> None:
    played = Played(initContainers=[container("false", name="a")], restartPolicy="Never")
    assert played.status["phase"] == "Failed"


def test_an_image_that_is_not_there() -> None:
    played = Played(containers=[{"name": "c", "image": "invalid.example/x"}])
    assert played.status["containerStatuses"][0]["state"]["waiting"]["reason"] == "ErrImagePull"
    assert played.status["phase"] == "Pending"
    assert played.to(10)["containerStatuses"][0]["state"]["waiting"]["reason"] == "ImagePullBackOff"


def test_a_deadline_ends_the_pod() -> None:
    played = Played(activeDeadlineSeconds=5, restartPolicy="Never")
    status = played.to(5)
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")


def test_stopping_takes_as_long_as_it_takes() -> None:
    played = Played()
    played.obj["metadata"]["annotations"] = {"simulation.pilothouse.dev/stop-delay": "3s"}
    slow = SimulatedPod(played.obj, (0.0, Instant(0, 0)), (), lambda: 0.5)
    slow.advance((0.0, Instant(0, 0)))
    played.obj["metadata"] |= {"deletionTimestamp": "now", "deletionGracePeriodSeconds": 2}
    assert slow.advance((1.0, Instant(1, 0))) == 3.0, "no longer than the grace period"
    assert not slow.has_stopped
    slow.advance((3.0, Instant(3, 0)))
    assert slow.has_stopped
    ended = slow.status((3.0, Instant(3, 0)), "a", "b")["containerStatuses"][0]["state"]["terminated"]
    assert ended["exitCode"] == 137


def test_a_server_stops_well_and_a_batch_is_interrupted() -> None:
    for policy, code, phase in (("Always", 0, "Succeeded"), ("Never", 143, "Failed")):
        played = Played(restartPolicy=policy)
        played.delete()
        assert played.pod.has_stopped
        assert played.status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == code
        assert played.status["phase"] == phase


def test_readiness_gates() -> None:
    played = Played(readinessGates=[{"conditionType": "example.com/gate"}])
    assert played.condition("Ready")["reason"] == "ReadinessGatesNotReady"
    played.obj["status"] = {"conditions": [{"type": "example.com/gate", "status": "True"}]}
    assert played.condition("Ready")["status"] == "True"


def test_readiness_waits_for_the_probe() -> None:
    played = Played(containers=[{"name": "c", "image": "i", "readinessProbe": {"initialDelaySeconds": 4}}])
    assert played.condition("Ready")["status"] == "False"
    played.to(4)
    assert played.condition("Ready")["status"] == "True"
    assert played.next is None


def test_a_liveness_probe_that_fails_restarts_the_container() -> None:
    probe = {"periodSeconds": 2, "failureThreshold": 3}
    spec = {"name": "c", "image": "i", "livenessProbe": probe}
    played = Played(containers=[spec], annotations={"simulation.pilothouse.dev/unhealthy-after": "5s"})
    assert played.to(8.9)["containerStatuses"][0]["restartCount"] == 0
    status = played.to(9.1)["containerStatuses"][0]
    assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert status["lastState"]["terminated"]["exitCode"] == 137
    told = [(each.reason, each.message) for each in played.pod.take_happenings()]
    assert ("Killing", "Container c failed liveness probe, will be restarted") in told
    assert played.to(19.5)["containerStatuses"][0]["restartCount"] == 1


def test_no_probe_no_failure() -> None:
    played = Played(annotations={"simulation.pilothouse.dev/unhealthy-after": "1s"})
    assert played.to(100)["containerStatuses"][0]["restartCount"] == 0


def test_a_container_has_started_when_its_startup_probe_says_so() -> None:
    probes = {"startupProbe": {"initialDelaySeconds": 5}, "readinessProbe": {"initialDelaySeconds": 2}}
    played = Played(containers=[container("nginx", **probes)])
    seen = []
    for at in (4.0, 5.0, 6.0, 7.0):
        [status] = played.to(at)["containerStatuses"]
        seen.append((status["started"], status["ready"]))
    assert seen == [(False, False), (True, False), (True, False), (True, True)]
    assert Played(containers=[container("nginx", **probes)]).next == 5.0


def test_an_unready_container_fails_its_readiness_probe() -> None:
    unready = {"simulation.pilothouse.dev/unready": "true"}
    probed = Played(annotations=unready, containers=[container("nginx", readinessProbe={"initialDelaySeconds": 2})])
    assert ("Warning", "Unhealthy") in {each[:2] for each in probed.pod.take_happenings()}
    plain = Played(annotations=unready, containers=[container("nginx")])
    assert "Unhealthy" not in {each.reason for each in plain.pod.take_happenings()}
    assert probed.condition("Ready")["status"] == plain.condition("Ready")["status"] == "False"
