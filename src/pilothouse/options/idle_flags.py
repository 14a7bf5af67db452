"""The flags that are accepted without effect. Made by ``tools/make_idle_flags.py``."""

from typing import Final

IDLE_FLAGS: Final = frozenset(
    {
        "allow-metric-labels",
        "allow-metric-labels-manifest",
        "contention-profiling",
        "coordinated-leadership-lease-duration",
        "coordinated-leadership-renew-deadline",
        "coordinated-leadership-retry-period",
        "debug-socket-path",
        "default-watch-cache-size",
        "emulated-version",
        "emulation-forward-compatible",
        "enable-garbage-collector",
        "log-json-info-buffer-size",
        "log-json-split-stream",
        "log-text-info-buffer-size",
        "log-text-split-stream",
        "min-compatibility-version",
        "runtime-config-emulation-forward-compatible",
        "show-hidden-metrics-for-version",
        "storage-initialization-timeout",
    }
)
