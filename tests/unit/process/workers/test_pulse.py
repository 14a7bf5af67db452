import asyncio

from pilothouse.process.workers.pulse import Pulse


class Patient:
    def __init__(self, number, answer):
        self.number, self.is_ready, self._answer = number, True, answer
        self.killed = asyncio.Event()
        self.asked = 0

    async def ask(self, name):
        self.asked += 1
        return await self._answer()

    def kill(self):
        self.is_ready = False
        self.killed.set()


async def answers():
    return None


async def hangs():
    await asyncio.Event().wait()


async def has_gone():
    raise OSError("gone")


async def test_who_does_not_answer_is_killed_and_nobody_else():
    well, stuck, gone = Patient(2, answers), Patient(3, hangs), Patient(4, has_gone)
    running = asyncio.create_task(Pulse([well, stuck, gone], every=0.001, patience=0.01).run())
    await stuck.killed.wait()
    before = well.asked
    while well.asked < before + 2:
        await asyncio.sleep(0)
    running.cancel()
    assert not well.killed.is_set()
    assert not gone.killed.is_set()
    assert stuck.asked == 1
