import asyncio
import contextvars
from typing import Any

import pytest

from pilothouse.net import eager


class Outcome:
    """Records what `start` reported."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.errors: list[BaseException] = []
        self.in_task: list[bool] = []

    def done(self, value: Any) -> None:
        self.values.append(value)
        self.in_task.append(asyncio.current_task() is not None)

    def failed(self, error: BaseException) -> None:
        self.errors.append(error)


def start(coro: Any) -> tuple[Outcome, eager.Suspended[Any] | None]:
    outcome = Outcome()
    return outcome, eager.start(coro, asyncio.get_running_loop(), outcome.done, outcome.failed)


async def settle(suspended: eager.Suspended[Any] | None) -> None:
    assert suspended is not None
    over = asyncio.Event()
    suspended.when_over(lambda _: over.set())
    await over.wait()


async def test_a_coroutine_that_does_not_wait_makes_no_task() -> None:
    async def answer() -> int:
        return 7

    outcome, task = start(answer())
    assert task is None
    assert outcome.values == [7]


async def test_an_exception_before_the_first_wait_is_reported() -> None:
    async def fail() -> None:
        raise KeyError("x")

    outcome, task = start(fail())
    assert task is None
    assert [type(e) for e in outcome.errors] == [KeyError]


async def test_the_rest_waits_for_the_future_that_was_awaited() -> None:
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    seen = []

    async def wait() -> str:
        seen.append(await future)
        await asyncio.sleep(0)
        return seen[0] + "!"

    outcome, task = start(wait())
    for _ in range(3):
        await asyncio.sleep(0)
    assert seen == []
    future.set_result("go")
    await settle(task)
    assert outcome.values == ["go!"]
    assert outcome.in_task == [False]


async def test_a_future_that_fails_raises_where_it_was_awaited() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait() -> str:
        try:
            await future
        except ValueError as error:
            return f"caught {error}"
        return "no"

    outcome, task = start(wait())
    future.set_exception(ValueError("boom"))
    await settle(task)
    assert outcome.values == ["caught boom"]


@pytest.mark.parametrize("turns", [0, 1, 2])
async def test_cancelling_throws_into_the_coroutine(turns: int) -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    outcome, task = start(wait())
    assert task is not None
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await settle(task)
    assert [type(e) for e in outcome.errors] == [asyncio.CancelledError]


async def test_a_coroutine_may_answer_its_cancellation_after_waiting_again() -> None:
    async def wait() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            return "late"
        return "no"

    outcome, task = start(wait())
    assert task is not None
    await asyncio.sleep(0)
    task.cancel()
    await settle(task)
    assert outcome.values == ["late"]


async def test_current_task_is_none_at_first_and_ensure_task_changes_that() -> None:
    async def look() -> tuple[bool, bool]:
        first = asyncio.current_task() is None
        await eager.ensure_task()
        async with asyncio.timeout(120):
            return first, asyncio.current_task() is None

    def begin() -> None:
        begun.append(start(look()))

    begun: list[tuple[Outcome, eager.Suspended[Any] | None]] = []
    asyncio.get_running_loop().call_soon(begin)
    await asyncio.sleep(0)
    outcome, task = begun[0]
    await settle(task)
    assert outcome.values == [(True, False)]


async def test_context_variables_stay_with_the_coroutine() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="outside")

    async def work() -> str:
        variable.set("inside")
        await asyncio.sleep(0)
        return variable.get()

    outcome, task = start(work())
    assert variable.get() == "outside"
    await settle(task)
    assert outcome.values == ["inside"]


async def test_who_settles_a_prompt_goes_on_with_what_waits_for_it() -> None:
    prompt: eager.Prompt[str] = eager.Prompt()
    again: eager.Prompt[str] = eager.Prompt()

    async def wait() -> str:
        return await prompt + await again

    outcome, suspended = start(wait())
    assert suspended is not None
    over: list[Any] = []
    suspended.when_over(over.append)
    prompt.settle("a")
    assert outcome.values == []
    assert not suspended.is_over
    again.settle("b")
    assert outcome.values == ["ab"]
    assert over == [suspended]
    assert suspended.is_over


async def test_a_refused_prompt_raises_where_it_was_awaited() -> None:
    prompt: eager.Prompt[str] = eager.Prompt()

    async def wait() -> str:
        return await prompt

    outcome, suspended = start(wait())
    prompt.refuse(ValueError("boom"))
    assert [str(error) for error in outcome.errors] == ["boom"]
    assert suspended is not None
    assert suspended.is_over


async def test_after_a_prompt_an_ordinary_future_makes_a_task() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="outside")
    prompt: eager.Prompt[None] = eager.Prompt()
    seen = []

    async def wait() -> str:
        variable.set("inside")
        await prompt
        seen.append(asyncio.current_task())
        await eager.ensure_task()
        async with asyncio.timeout(120):
            return variable.get()

    outcome, suspended = start(wait())
    asyncio.get_running_loop().call_soon(prompt.settle, None)
    await settle(suspended)
    await asyncio.sleep(0)
    assert seen == [None]
    assert outcome.values == ["inside"]


async def test_a_prompt_that_is_settled_already_is_not_waited_for() -> None:
    prompt: eager.Prompt[int] = eager.Prompt()
    prompt.settle(7)

    async def wait() -> int:
        return await prompt

    outcome, suspended = start(wait())
    assert suspended is None
    assert outcome.values == [7]


async def test_a_task_waits_for_a_prompt_as_for_any_future() -> None:
    prompt: eager.Prompt[int] = eager.Prompt()

    async def wait() -> int:
        return await prompt

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    outcome, suspended = start(wait())
    prompt.settle(7)
    assert outcome.values == [7]
    assert suspended is not None
    assert await task == 7


async def test_two_that_wait_for_one_prompt_both_go_on() -> None:
    prompt: eager.Prompt[int] = eager.Prompt()

    async def wait() -> int:
        return await prompt

    first, _ = start(wait())
    second, suspended = start(wait())
    prompt.settle(7)
    await settle(suspended)
    await asyncio.sleep(0)
    assert (first.values, second.values) == ([7], [7])


async def test_cancelling_what_waits_for_a_prompt_throws_into_it_a_turn_later() -> None:
    prompt: eager.Prompt[int] = eager.Prompt()

    async def wait() -> str:
        try:
            await prompt
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            return "late"
        return "no"

    outcome, suspended = start(wait())
    assert suspended is not None
    suspended.cancel()
    assert prompt.cancelled()
    assert not suspended.is_over
    prompt.settle(7)
    await settle(suspended)
    await asyncio.sleep(0)
    assert outcome.values == ["late"]
    suspended.cancel()


async def test_cancelling_at_once_tells_the_coroutine_in_its_own_context() -> None:
    """The task that goes on with it has not begun by then."""
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="")
    seen: list[str] = []

    async def wait() -> str:
        token = name.set("set")
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            seen.append(name.get())
            return "told"
        finally:
            name.reset(token)
        return "not cancelled"

    outcome, suspended = start(wait())
    assert suspended is not None
    suspended.cancel()
    await settle(suspended)
    assert (seen, outcome.values, outcome.errors) == (["set"], ["told"], [])
