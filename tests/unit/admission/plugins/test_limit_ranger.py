"""LimitRanger: defaults, notes, bounds and ratios."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugins.limit_ranger import LimitRanger
from pilothouse.endpoints.admission import CREATE, UPDATE
from pilothouse.machinery.gvk import GroupResource

PODS, RANGES = "/v1/pods", "/v1/limitranges"


def container(name: str = "c", **resources: Any) -> dict[str, Any]:
    return {"name": name, "image": "img", "resources": resources}


async def test_defaults_and_the_note_about_them(
    environment: Environment, make_request: Any, make_pod: Any, put: Any
) -> None:
    limit = {"type": "Container", "default": {"cpu": "1", "memory": "1Gi"}, "defaultRequest": {"cpu": "500m"}}
    await put(RANGES, "l", "ns", spec={"limits": [limit]})
    pod = make_pod(
        containers=[container(limits={"cpu": "2"})], initContainers=[container("i", requests={"cpu": "100m"})]
    )
    await LimitRanger(environment).admit(make_request(PODS, pod))
    assert pod["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "2", "memory": "1Gi"},
        "requests": {"cpu": "500m"},
    }
    assert pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu request for container c; memory limit for container c; "
        "cpu, memory limit for init container i"
    )


CONTAINER_LIMITS = {"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "1"}}


@pytest.mark.parametrize(
    ("limit", "resources", "message"),
    [
        (CONTAINER_LIMITS, {"requests": {"cpu": "200m"}, "limits": {"cpu": "1"}}, ""),
        (CONTAINER_LIMITS, {"requests": {"cpu": "50m"}, "limits": {"cpu": "1"}},
         "minimum cpu usage per Container is 100m, but request is 50m"),
        (CONTAINER_LIMITS, {"requests": {"cpu": "200m"}, "limits": {"cpu": "2"}},
         "maximum cpu usage per Container is 1, but limit is 2"),
        (CONTAINER_LIMITS, {"requests": {"cpu": "1500m"}, "limits": {"cpu": "1"}},
         "maximum cpu usage per Container is 1, but request is 1500m"),
        (CONTAINER_LIMITS, {}, "[minimum cpu usage per Container is 100m.  No request is specified, "
         "maximum cpu usage per Container is 1.  No limit is specified]"),
        ({"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
         {"requests": {"cpu": "100m"}, "limits": {"cpu": "250m"}},
         "cpu max limit to request ratio per Container is 2, but provided ratio is 2.500000"),
        ({"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}, {"limits": {"cpu": "250m"}},
         "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0"),
        ({"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}, {"requests": {"cpu": "250m"}},
         "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0"),
        ({"type": "Pod", "max": {"memory": "1Gi"}}, {"limits": {"memory": "2Gi"}},
         "maximum memory usage per Pod is 1Gi, but limit is 2Gi"),
    ],
)  # fmt: skip
async def test_bounds(
    environment: Environment,
    make_request: Any,
    make_pod: Any,
    put: Any,
    refused: Any,
    limit: Any,
    resources: Any,
    message: str,
) -> None:
    await put(RANGES, "l", "ns", spec={"limits": [limit]})
    attributes = make_request(PODS, make_pod(containers=[container(**resources)]))
    if not message:
        await LimitRanger(environment).validate(attributes)
        return
    assert (await refused(LimitRanger(environment).validate(attributes))).message == f'pods "p" is forbidden: {message}'


@pytest.mark.parametrize(
    ("spec", "sums_to"),
    [
        ({"containers": [container(limits={"cpu": "1"}), container("d", limits={"cpu": "1"})]}, "2"),
        ({"initContainers": [container(limits={"cpu": "3"})], "containers": [container(limits={"cpu": "1"})]}, "3"),
        (
            {
                "initContainers": [
                    {**container("s", limits={"cpu": "2"}), "restartPolicy": "Always"},
                    container("i", limits={"cpu": "3"}),
                ],
                "containers": [container(limits={"cpu": "1"})],
            },
            "5",
        ),
        ({"containers": [container(limits={"cpu": "1"})], "resources": {"limits": {"cpu": "4"}}}, "4"),
    ],
)
async def test_the_pod_as_a_whole(
    environment: Environment, make_request: Any, make_pod: Any, put: Any, refused: Any, spec: Any, sums_to: str
) -> None:
    await put(RANGES, "l", "ns", spec={"limits": [{"type": "Pod", "max": {"cpu": "1500m"}}]})
    error = await refused(LimitRanger(environment).validate(make_request(PODS, make_pod(**spec))))
    assert error.message.endswith(f"maximum cpu usage per Pod is 1500m, but limit is {sums_to}")


async def test_claims(environment: Environment, make_request: Any, put: Any, refused: Any) -> None:
    limit = {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "5Gi"}}
    await put(RANGES, "l", "ns", spec={"limits": [limit]})

    def claim(size: str) -> Any:
        obj = {"metadata": {"name": "c"}, "spec": {"resources": {"requests": {"storage": size}}}}
        return make_request("/v1/persistentvolumeclaims", obj)

    plugin = LimitRanger(environment)
    await plugin.validate(claim("2Gi"))
    assert (
        "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi"
        in (await refused(plugin.validate(claim("1Mi")))).message
    )
    assert (
        "maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 6Gi"
        in (await refused(plugin.validate(claim("6Gi")))).message
    )


async def test_what_goes_is_not_held_up(environment: Environment, make_request: Any, make_pod: Any, put: Any) -> None:
    await put(RANGES, "l", "ns", spec={"limits": [CONTAINER_LIMITS]})
    old = make_pod()
    old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    await LimitRanger(environment).validate(make_request("/v1/pods:resize", make_pod(), old, operation=UPDATE))


@pytest.mark.parametrize(
    ("operation", "resource", "subresource", "concerned"),
    [
        (CREATE, "pods", "", True),
        (UPDATE, "pods", "", False),
        (UPDATE, "pods", "resize", True),
        (UPDATE, "persistentvolumeclaims", "", True),
        (UPDATE, "persistentvolumeclaims", "status", False),
        (CREATE, "services", "", False),
    ],
)
def test_what_concerns_it(
    environment: Environment, operation: str, resource: str, subresource: str, concerned: bool
) -> None:
    assert LimitRanger(environment).concerns(operation, GroupResource("", resource), subresource) is concerned
