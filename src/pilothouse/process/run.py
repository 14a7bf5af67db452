"""Running the server: from completed options to the end of the process.

    build    store, caches, three servers, filters
    start    open the store, listen, run post-start hooks, say where we are
    serve    until told to stop
    stop     fail readiness → wait → end watches and drain requests → close the store

The first interrupt stops gracefully, the second at once.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pilothouse.credentials.private_folder import make_private_folder
from pilothouse.net.strangers import raise_descriptor_limit
from pilothouse.options import ServerOptions
from pilothouse.options.process_options import ProcessOptions
from pilothouse.process.allocator import return_large_memory
from pilothouse.process.hosting import HostingProcess
from pilothouse.process.process import Process
from pilothouse.storage.backends.contract import StorageError

logger = logging.getLogger(__name__)
# Requests make much garbage without cycles: looking for cycles after every 700 objects costs more than it finds.
GC_THRESHOLDS = (25_000, 20, 25)
MakeProcess = Callable[[], HostingProcess[Any]]


def serve(options: ServerOptions) -> int:
    """Run the main server until told to stop; the exit code."""
    return serve_process(options, lambda: Process(options))


def serve_process(options: ProcessOptions, make: MakeProcess) -> int:
    """Run any process of ours until told to stop; the exit code."""
    import uvloop

    return_large_memory()
    raise_descriptor_limit()
    make_private_folder(Path(options.own.data_dir))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run(options, make))


async def run(options: ProcessOptions, make: MakeProcess) -> int:
    """The life of one server process."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    _install_signals(loop, stop)
    try:
        process = make()
    except (OSError, ValueError) as error:
        # Files named by flags that cannot be read, or ask for what cannot be done.
        logger.error("cannot start: %s", options.explain(error))
        return 1
    gc.set_threshold(*GC_THRESHOLDS)
    gc.freeze()  # nothing made so far goes before the process does: the hooks need not pay for looking at it
    try:
        await process.start()
    except Exception as error:
        expected = isinstance(error, OSError | ValueError | StorageError)
        logger.error("cannot start: %s", options.explain(error), exc_info=None if expected else error)
        return 1
    # What exists now lives as long as the process: the collector need not look at it again.
    gc.collect()
    gc.freeze()
    print(options.greeting(), flush=True)
    await stop.wait()
    await _stop(process)
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
