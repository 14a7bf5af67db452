"""Running the server: from completed options to the end of the process.

    build    store, caches, three servers, filters
    start    open the store, listen, run post-start hooks, say where we are
    serve    until told to stop
    stop     fail readiness → wait → end watches and drain requests → close the store

The first interrupt stops gracefully, the second at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from pilothouse.credentials.private_folder import make_private_folder
from pilothouse.net.strangers import raise_descriptor_limit
from pilothouse.options import ServerOptions
from pilothouse.options.process_options import ProcessOptions
from pilothouse.process import garbage
from pilothouse.process.allocator import return_large_memory
from pilothouse.process.hosting import HostingProcess
from pilothouse.process.process import Process
from pilothouse.storage.backends.contract import StorageError

logger = logging.getLogger(__name__)
MakeProcess = Callable[[], HostingProcess[Any]]
ToldToStop = Callable[[], Awaitable[bool]]
"""Returns when a process is to stop; whether gracefully."""


def serve(options: ServerOptions) -> int:
    """Run the main server until told to stop; the exit code."""
    count = options.own.worker_count()
    if count == 1:
        return serve_process(options, lambda: Process(options))
    from pilothouse.process.workers.pool import WorkerPool  # only where there are several

    return serve_process(options, lambda: Process(options, companions=WorkerPool(options, count)))


def serve_process(options: ProcessOptions, make: MakeProcess) -> int:
    """Run any process of ours until told to stop; the exit code."""
    make_private_folder(Path(options.own.data_dir))
    return with_loop(run(options, make))


def with_loop(life: Coroutine[Any, Any, int]) -> int:
    """Run a life on an event loop of our kind; the exit code."""
    import uvloop

    return_large_memory()
    raise_descriptor_limit()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(life)


async def run(options: ProcessOptions, make: MakeProcess) -> int:
    """The life of one server process that signals end."""
    stop = asyncio.Event()
    _install_signals(asyncio.get_running_loop(), stop)
    return await live(options, make, stop.wait, lambda: print(options.greeting(), flush=True))


async def live(
    options: ProcessOptions, make: MakeProcess, told_to_stop: ToldToStop, greet: Callable[[], None] = lambda: None
) -> int:
    """Make a process, start it, and stop it when it is told to; the exit code."""
    try:
        process = make()
    except (OSError, ValueError) as error:
        # Files named by flags that cannot be read, or ask for what cannot be done.
        logger.error("cannot start: %s", options.explain(error))
        return 1
    garbage.before_start(process.survivors)
    try:
        await process.start()
    except Exception as error:
        expected = isinstance(error, OSError | ValueError | StorageError)
        logger.error("cannot start: %s", options.explain(error), exc_info=None if expected else error)
        return 1
    garbage.after_start()
    greet()
    if await told_to_stop():
        await _stop(process)
    else:
        await process.close()
    return 0


async def _stop(process: HostingProcess[Any]) -> None:
    logger.info("stopping")
    await process.stop()
    logger.info("stopped")


def _install_signals(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    def interrupted() -> None:
        if stop.is_set():
            os._exit(1)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted)
