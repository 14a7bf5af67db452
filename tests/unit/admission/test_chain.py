"""The chain: who is asked, in which order, and when everybody is asked again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from pilothouse.admission.chain import AdmissionChain
from pilothouse.admission.environment import Environment
from pilothouse.admission.objects import Objects
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.refusals import forbidden, name_of
from pilothouse.admission.reinvocation import Reinvocation
from pilothouse.endpoints.admission import CREATE, DELETE, UPDATE, Attributes
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.gvk import GroupResource
from pilothouse.storage.cacher import Entry

Put = Callable[..., Awaitable[Entry]]

CONFIG_MAPS = "/v1/configmaps"


def recorder(label: str, log: list[str], **declared: Any) -> type[Plugin]:
    class Recorder(Plugin):
        operations = declared.get("operations", frozenset({CREATE}))
        resources = declared.get("resources")
        subresources = declared.get("subresources", frozenset({""}))

        async def admit(self, attributes: Attributes) -> None:
            log.append(f"admit {label}")

        async def validate(self, attributes: Attributes) -> None:
            log.append(f"validate {label}")

    return Recorder


def make(environment: Environment, *plugins: type[Plugin]) -> AdmissionChain:
    return AdmissionChain([plugin(environment) for plugin in plugins])


async def test_plugins_run_in_order_and_phases_apart(environment: Environment, make_request: Any) -> None:
    log: list[str] = []
    chain = make(environment, recorder("a", log), recorder("b", log))
    attributes = make_request(CONFIG_MAPS, {"metadata": {"name": "x"}})
    await chain.admit(attributes)
    await chain.validate(attributes)
    assert log == ["admit a", "admit b", "validate a", "validate b"]


@pytest.mark.parametrize(
    ("declared", "operation", "resource", "asked"),
    [
        ({}, CREATE, "/v1/pods", True),
        ({}, UPDATE, "/v1/pods", False),
        ({"operations": frozenset({UPDATE, DELETE})}, DELETE, "/v1/pods", True),
        ({"resources": frozenset({GroupResource("", "pods")})}, CREATE, "/v1/pods", True),
        ({"resources": frozenset({GroupResource("", "pods")})}, CREATE, "apps/v1/pods", False),
        ({}, CREATE, "/v1/pods:binding", False),
        ({"subresources": None}, CREATE, "/v1/pods:binding", True),
        ({"subresources": frozenset({"binding"})}, CREATE, "/v1/pods", False),
    ],
)
async def test_only_concerned_plugins_are_asked(
    environment: Environment, make_request: Any, declared: Any, operation: str, resource: str, asked: bool
) -> None:
    log: list[str] = []
    chain = make(environment, recorder("a", log, **declared))
    await chain.admit(make_request(resource, {"metadata": {}}, operation=operation))
    assert bool(log) is asked


async def test_hooks_that_a_plugin_lacks_are_not_called(environment: Environment, make_request: Any) -> None:
    class Silent(Plugin):
        operations = frozenset({CREATE})

    chain = make(environment, Silent)
    await chain.admit(make_request(CONFIG_MAPS, {"metadata": {}}))
    assert [phase.steps for phase in chain._mutating.values()] == [()]


async def test_a_refusal_ends_the_chain(environment: Environment, make_request: Any, refused: Any) -> None:
    log: list[str] = []

    class Refusing(Plugin):
        operations = frozenset({CREATE})

        async def admit(self, attributes: Attributes) -> None:
            raise forbidden(attributes, "no")

    chain = make(environment, recorder("a", log), Refusing, recorder("b", log))
    error = await refused(chain.admit(make_request(CONFIG_MAPS, {"metadata": {"name": "x"}})))
    assert (error.code, error.message) == (403, 'configmaps "x" is forbidden: no')
    assert log == ["admit a"]


async def test_reinvocation_runs_everything_twice_but_never_thrice(environment: Environment, make_request: Any) -> None:
    log: list[str] = []

    class Changing(Plugin):
        operations = frozenset({CREATE})

        async def admit(self, attributes: Attributes) -> None:
            if attributes.reinvocation is None:
                attributes.reinvocation = Reinvocation()
            attributes.reinvocation.require()
            log.append("changed")

    chain = make(environment, recorder("a", log), Changing)
    await chain.admit(make_request(CONFIG_MAPS, {"metadata": {}}))
    assert log == ["admit a", "changed"] * 2


@pytest.mark.parametrize(
    ("name", "obj", "shown"),
    [
        ("given", {"metadata": {"name": "own"}}, "given"),
        ("", {"metadata": {"name": "own"}}, "own"),
        ("", {"metadata": {"generateName": "gen-"}}, "gen-"),
        ("", {"metadata": {}}, "Unknown"),
        ("", None, "Unknown"),
        ("", {}, "Unknown/errorGettingName"),
    ],
)
def test_refusals_name_the_object_as_far_as_they_can(make_request: Any, name: str, obj: Any, shown: str) -> None:
    assert name_of(make_request(CONFIG_MAPS, obj, name=name)) == shown


async def test_idle_plugins_are_counted_and_not_called(environment: Environment, make_request: Any) -> None:
    log: list[str] = []
    idle = True

    class Sleeper(recorder("sleeper", log)):  # type: ignore[misc]
        name = "Sleeper"

        def is_idle(self) -> bool:
            return idle

    chain = make(environment, recorder("a", log), Sleeper)
    attributes = make_request(CONFIG_MAPS, {"metadata": {"name": "x"}})
    await chain.admit(attributes)
    await chain.validate(attributes)
    assert log == ["admit a", "validate a"]
    counted = chain.metrics.plugin("Sleeper", "admit", CREATE, rejected=False).count
    assert counted == 1
    idle = False
    await chain.admit(attributes)
    assert log == ["admit a", "validate a", "admit a", "admit sleeper"]


async def test_who_is_idle_is_asked_only_when_what_he_decides_by_has_changed(
    environment: Environment, make_request: Any, put: Put
) -> None:
    log: list[str] = []
    asked = 0

    class Sleeper(recorder("sleeper", log)):  # type: ignore[misc]
        name = "Sleeper"

        def __init__(self, environment: Environment) -> None:
            super().__init__(environment)
            self.quotas = environment.objects("", "v1", "resourcequotas")

        def is_idle(self) -> bool:
            nonlocal asked
            asked += 1
            return self.quotas.is_empty

        def idle_by(self) -> Sequence[Objects]:
            return (self.quotas,)

    await put("/v1/secrets", "one", "default")
    chain = make(environment, Sleeper)
    await environment.objects("", "v1", "resourcequotas").ready()
    attributes = make_request(CONFIG_MAPS, {"metadata": {"name": "x"}})
    for _ in range(5):
        await chain.admit(attributes)
    assert (asked, log) == (1, [])
    await put("/v1/resourcequotas", "many", "default")
    for _ in range(2):
        await chain.admit(attributes)
    assert (asked, log) == (2, ["admit sleeper"] * 2)
    counted = chain.metrics.plugin("Sleeper", "admit", CREATE, rejected=False).count
    assert counted == 7


async def test_idle_plugins_count_as_asked_as_far_as_the_one_who_refuses(
    environment: Environment, make_request: Any
) -> None:
    class Idle(recorder("idle", [])):  # type: ignore[misc]
        def __init__(self, environment: Environment) -> None:
            super().__init__(environment)
            self.quotas = environment.objects("", "v1", "resourcequotas")

        def is_idle(self) -> bool:
            return True

        def idle_by(self) -> Sequence[Objects]:
            return (self.quotas,)

    class Before(Idle):
        name = "Before"

    class After(Idle):
        name = "After"

    class Refusing(Plugin):
        name = "Refusing"
        operations = frozenset({CREATE})

        async def admit(self, attributes: Attributes) -> None:
            raise forbidden(attributes, "no")

    chain = make(environment, Before, Refusing, After)
    with pytest.raises(StatusError):
        await chain.admit(make_request(CONFIG_MAPS, {"metadata": {"name": "x"}}))
    counts = [chain.metrics.plugin(name, "admit", CREATE, rejected=False).count for name in ("Before", "After")]
    assert counts == [1, 0]
