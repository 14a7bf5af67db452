from __future__ import annotations

import pytest

from pilothouse.apis import types
from pilothouse.apis.batch.cron_job.strategy import CronJobStrategy
from pilothouse.apis.strategy import Context
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.decoding import decode

STRATEGY = CronJobStrategy()
CTX = Context()


def made(spec: Object | None = None, job: Object | None = None, name: str = "c") -> Object:
    """A defaulted cron job."""
    pod = {"restartPolicy": "OnFailure", "containers": [{"name": "c", "image": "x:1"}]}
    template = {"spec": {"template": {"spec": pod}, **(job or {})}}
    body = {"metadata": {"name": name}, "spec": {"schedule": "* * * * *", "jobTemplate": template, **(spec or {})}}
    obj, _ = decode(types.struct("batch.v1.CronJob"), body)
    STRATEGY.default(obj)
    return obj


def test_defaults() -> None:
    spec = made()["spec"]
    assert (spec["concurrencyPolicy"], spec["suspend"]) == ("Allow", False)
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (3, 1)
    assert "backoffLimit" not in spec["jobTemplate"]["spec"]
    again, _ = decode(types.struct("batch.v1.CronJob"), made())
    STRATEGY.default(again)
    assert again == made()


@pytest.mark.parametrize(
    ("spec", "job", "expected"),
    [
        ({}, {}, []),
        ({"timeZone": "Europe/Berlin"}, {}, []),
        ({"schedule": ""}, {}, ["spec.schedule: Required value"]),
        (
            {"schedule": "x"},
            {},
            ['spec.schedule: Invalid value: "x": expected exactly 5 fields, found 1: [x]'],
        ),
        ({"timeZone": ""}, {}, ['spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string']),
        ({"timeZone": "A/B C"}, {}, ['spec.timeZone: Invalid value: "A/B C": unknown time zone A/B C']),
        ({"timeZone": "A>B"}, {}, ['spec.timeZone: Invalid value: "A\\u003eB": unknown time zone A>B']),
        (
            {"timeZone": "local"},
            {},
            [
                'spec.timeZone: Invalid value: "local": timeZone must be an explicit time zone as defined in '
                "https://www.iana.org/time-zones",
                'spec.timeZone: Invalid value: "local": unknown time zone local',
            ],
        ),
        (
            {"concurrencyPolicy": "Queue", "failedJobsHistoryLimit": -1},
            {},
            [
                'spec.concurrencyPolicy: Unsupported value: "Queue": supported values: "Allow", "Forbid", "Replace"',
                "spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0",
            ],
        ),
        (
            {},
            {"manualSelector": True, "selector": {"matchLabels": {"a": "b"}}, "backoffLimit": -1},
            [
                "spec.jobTemplate.spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0",
                'spec.jobTemplate.spec.selector: Invalid value: {"matchLabels":{"a":"b"}}: `selector` will be '
                "auto-generated",
                'spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"',
            ],
        ),
    ],
)
def test_validation(spec: Object, job: Object, expected: list[str]) -> None:
    assert [str(e) for e in STRATEGY.validate(CTX, made(spec, job))] == expected


def test_names_leave_room_for_a_time() -> None:
    assert STRATEGY.validate(CTX, made(name="c" * 52)) == []
    (error,) = STRATEGY.validate(CTX, made(name="c" * 53))
    assert str(error) == f'metadata.name: Invalid value: "{"c" * 53}": must be no more than 52 characters'


def test_time_zones_in_schedules_are_a_thing_of_the_past() -> None:
    zoned, plain = made({"schedule": "TZ=UTC 1 * * * *"}), made()
    refusal = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
    assert refusal in str(STRATEGY.validate(CTX, zoned)[0])
    assert refusal in str(STRATEGY.validate_update(CTX, zoned, plain)[0])
    assert STRATEGY.validate_update(CTX, made({"schedule": "TZ=UTC 2 * * * *"}), zoned) == []
    both = made({"schedule": "TZ=UTC 2 * * * *", "timeZone": "UTC"})
    assert "cannot use both" in str(STRATEGY.validate_update(CTX, both, zoned)[0])
    (warning,) = STRATEGY.warnings_on_update(CTX, zoned, zoned)
    assert warning.startswith("cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead")


def test_a_time_zone_that_became_unknown_may_stay() -> None:
    old = made({"timeZone": "Atlantis/Old"})
    assert STRATEGY.validate_update(CTX, made({"timeZone": "Atlantis/Old", "suspend": True}), old) == []


def test_columns() -> None:
    obj = made()
    obj["status"] = {"active": [{}, {}]}
    cells = {column.name: column.cell(obj) for column in STRATEGY.columns}
    assert (cells["Schedule"], cells["Timezone"], cells["Suspend"]) == ("* * * * *", "<none>", "False")
    assert (cells["Active"], cells["Last Schedule"], cells["Selector"]) == (2, "<none>", "<none>")
