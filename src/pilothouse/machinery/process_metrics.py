"""What the operating system and the interpreter say about this process, read when somebody scrapes.

``process_*`` are the families every Prometheus client has. What Go's runtime tells of itself has no meaning here;
instead there are the garbage collector's runs by generation, the threads, and the objects that it looks after. How
long the event loop is held is measured by the stall meter.
"""

from __future__ import annotations

import gc
import os
import resource
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from pilothouse.machinery.metrics import CollectedGauge, Instrument, Joining

_SELF: Final = Path("/proc/self")
_MOST_OF_A_PAGE: Final = 1 << 20
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
Series = Iterable[tuple[tuple[str, ...], float]]


class ProcessMetrics:
    """The families of this process."""

    def __init__(self) -> None:
        self._started = _start_time()

    def instruments(self) -> list[Instrument]:
        """All of them. What this system does not tell is left out."""
        found = [
            _plain("process_cpu_seconds_total", "Processor time used.", _cpu_seconds, "counter"),
            _plain("process_start_time_seconds", "When the process began.", lambda: self._started, joined="least"),
            _plain("process_max_fds", "The most files it may have open.", _most_files, joined="most"),
            _plain("process_virtual_memory_max_bytes", "The most memory it may map.", _most_memory, joined="most"),
        ]
        if _SELF.exists():
            memory, network = _KernelPage(_SELF / "statm"), _KernelPage(_SELF / "net" / "dev")
            found += [
                _plain("process_open_fds", "Files open.", lambda: len(os.listdir(_SELF / "fd"))),
                _plain("process_virtual_memory_bytes", "Memory mapped.", lambda: _pages(memory, 0) * _PAGE),
                _plain("process_resident_memory_bytes", "Memory in use.", lambda: _pages(memory, 1) * _PAGE),
                _traffic_counter("process_network_receive_bytes_total", "Bytes received.", network, 0),
                _traffic_counter("process_network_transmit_bytes_total", "Bytes sent.", network, 8),
            ]
        return [
            *found,
            _plain("pilothouse_threads", "Threads of this process.", threading.active_count),
            _plain(
                "pilothouse_gc_tracked_objects", "Objects the collector has yet to look at.", lambda: gc.get_count()[0]
            ),
            CollectedGauge(
                "pilothouse_gc_collections_total",
                "Runs of the garbage collector.",
                ("generation",),
                lambda: _collector("collections"),
                "counter",
            ),
            CollectedGauge(
                "pilothouse_gc_collected_total",
                "Objects freed by the garbage collector.",
                ("generation",),
                lambda: _collector("collected"),
                "counter",
            ),
        ]


def _plain(
    name: str, words: str, read: Callable[[], float], kind: str = "gauge", joined: Joining = "sum"
) -> CollectedGauge:
    return CollectedGauge(name, words, (), lambda: [((), read())], kind, aside=True, joined=joined)


def _traffic_counter(name: str, words: str, network: _KernelPage, column: int) -> CollectedGauge:
    """The traffic of the network namespace, in which all processes of a server are."""
    return _plain(name, words, lambda: _traffic(network, column), "counter", "most")


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system


def _most_files() -> float:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _most_memory() -> float:
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return 1.8446744073709552e19 if limit == resource.RLIM_INFINITY else limit


class _KernelPage:
    """A page that the kernel makes anew whenever it is read: kept open, so that a scrape opens no files."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> str:
        """The page as it is now."""
        return os.pread(self._descriptor, _MOST_OF_A_PAGE, 0).decode()

    def __del__(self) -> None:
        os.close(self._descriptor)


def _pages(memory: _KernelPage, field: int) -> int:
    return int(memory.read().split()[field])


def _traffic(network: _KernelPage, column: int) -> int:
    """Bytes over all interfaces of the network namespace, as the Prometheus client for Go counts them."""
    lines = network.read().splitlines()[2:]
    return sum(int(line.partition(":")[2].split()[column]) for line in lines)


def _collector(what: str) -> Series:
    return [((str(number),), stats[what]) for number, stats in enumerate(gc.get_stats())]


def _start_time() -> float:
    """From the kernel, which counts from its own start; without it, now."""
    try:
        ticks = int((_SELF / "stat").read_text().rpartition(")")[2].split()[19])
        booted = float(Path("/proc/uptime").read_text().split()[0])
    except OSError:
        return time.time()
    return round(time.time() - booted + ticks / _TICKS, 2)
