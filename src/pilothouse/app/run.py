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
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.app.assembly import Assembly, assemble
from pilothouse.storage.backends.contract import StorageError

if TYPE_CHECKING:
    from pilothouse.options import ServerOptions

logger = logging.getLogger(__name__)
# Requests make much garbage without cycles: looking for cycles after every 700 objects costs more than it finds.
_GC_THRESHOLDS = (25_000, 20, 25)


def serve(options: ServerOptions) -> int:
    """Run until told to stop; the exit code."""
    import uvloop

    Path(options.own.data_dir).mkdir(mode=0o700, parents=True, exist_ok=True)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run(options))


async def run(options: ServerOptions) -> int:
    """The life of one server process."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    _install_signals(loop, stop)
    try:
        assembly = assemble(options)
    except (OSError, ValueError) as error:
        # Files named by flags that cannot be read, or ask for what cannot be done.
        logger.error("cannot start: %s", error)
        return 1
    gc.set_threshold(*_GC_THRESHOLDS)
    gc.freeze()  # nothing made so far goes before the process does: the hooks need not pay for looking at it
    try:
        await assembly.start()
    except Exception as error:
        expected = isinstance(error, OSError | StorageError)
        logger.error("cannot start: %s", error, exc_info=None if expected else error)
        await assembly.close()
        return 1
    # What exists now lives as long as the process: the collector need not look at it again.
    gc.collect()
    gc.freeze()
    print(options.derived.greeting, flush=True)
    await stop.wait()
    await _stop(assembly)
    return 0


async def _stop(assembly: Assembly) -> None:
    logger.info("stopping")
    await assembly.stop()
    logger.info("stopped")


def _install_signals(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    def interrupted() -> None:
        if stop.is_set():
            os._exit(1)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted)
