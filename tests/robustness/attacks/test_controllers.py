"""Objects that are easy to write and hard to work on, in a server that runs the controllers itself."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from tests.robustness.attacks.conftest import Victim

CRON_JOBS = "/apis/batch/v1/namespaces/default/cronjobs"


@pytest.fixture(scope="module")
def managed(launch_victim: Callable[..., Victim]) -> Victim:
    """A server with the controller of cron jobs."""
    return launch_victim("--controllers=cronjob")


def worked_on(victim: Victim) -> int:
    """How many cron jobs the controller has looked at."""
    page = victim.call("GET", "/metrics").body.decode()
    found = re.search(r'^workqueue_work_duration_seconds_count\{name="cronjob\S*"\} (\d+)', page, re.MULTILINE)
    return int(found[1]) if found else 0


def test_a_schedule_of_many_times(managed: Victim) -> None:
    job = {"template": {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}}
    spec = {"schedule": ",".join(["1-59/2"] * 75_000) + " 1 1 1 *", "jobTemplate": {"spec": job}}
    cron_job = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "often"}, "spec": spec}
    with managed.attacked("a schedule of 75,000 times"):
        assert managed.call("POST", CRON_JOBS, cron_job).status == 201
        while not worked_on(managed):
            assert managed.server.process.poll() is None
