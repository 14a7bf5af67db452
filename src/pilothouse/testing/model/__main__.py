"""``python -m pilothouse.testing.model``: rounds of the model checker for as long as wanted, with a seed for each.

Rounds of one server on its embedded store alternate with rounds of several servers on an etcd.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from pilothouse.testing.model.runner import Plan, check


def main() -> int:
    """Run rounds until the time is up; 1 after the first that goes wrong."""
    parser = argparse.ArgumentParser(prog="python -m pilothouse.testing.model", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600, help="how long in all")
    parser.add_argument("--round", type=float, default=60, help="seconds of one round")
    parser.add_argument("--servers", type=int, default=3, help="server processes, where they share an etcd")
    parser.add_argument("--workers", type=int, default=1, help="processes of each server")
    parser.add_argument("--members", type=int, default=3, help="members of that etcd; 0: never more than one server")
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    flags = parser.parse_args()
    ends, seed = time.monotonic() + flags.seconds, flags.seed
    while time.monotonic() < ends:
        with tempfile.TemporaryDirectory(prefix="pilothouse-model-") as folder:
            seconds = min(flags.round, max(1.0, ends - time.monotonic()))
            shared = flags.members > 0 and seed % 2 == 0
            plan = Plan(
                seconds=seconds,
                seed=seed,
                servers=flags.servers if shared else 1,
                members=flags.members if shared else 0,
                workers=flags.workers,
            )
            history, wrong = check(Path(folder) / "data", plan)
        events = sum(len(watched.events) for watched in history.watched)
        print(f"seed {seed}: {len(history.written)} writes, {len(history.listed)} lists, {events} events", flush=True)
        for violation in wrong:
            print(f"  wrong: {violation}")
        if wrong:
            return 1
        seed += 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
