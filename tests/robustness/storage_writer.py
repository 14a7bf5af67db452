"""Writes to a store as fast as it can and prints every acknowledged write, until it is killed."""

import asyncio
import sys

from pilothouse.storage.backends.contract import Conflict, KeyExists
from pilothouse.storage.backends.sqlite import Retention, SQLiteBackend


async def write(store, worker, run):
    revision, number = 0, 0
    key = f"/registry/things/{worker}/changing"
    current = await store.get(key)
    if current is not None:
        revision = current.revision
    while True:
        number += 1
        value = f"{run}-{number}".encode().ljust(200 + number % 3000, b".")
        try:
            made = await store.create(f"/registry/things/{worker}/{run}-{number}", value)
            sys.stdout.write(f"put /registry/things/{worker}/{run}-{number} {made} {len(value)}\n")
            if revision and number % 7 == 0:
                gone = await store.delete(key, revision)
                revision = 0
                sys.stdout.write(f"del {key} {gone} 0\n")
            elif revision:
                revision = await store.update(key, value, revision)
                sys.stdout.write(f"put {key} {revision} {len(value)}\n")
            else:
                revision = await store.create(key, value)
                sys.stdout.write(f"put {key} {revision} {len(value)}\n")
        except (Conflict, KeyExists) as error:
            sys.stdout.write(f"bad {error!r} 0 0\n")
        sys.stdout.flush()


async def main(path, run, group):
    store = SQLiteBackend(path, retention=Retention(seconds=0.2, marks=4), upkeep_seconds=0.05)
    await store.open()
    print("ready", flush=True)
    await asyncio.gather(*(write(store, f"{group}{number}", run) for number in range(8)))


asyncio.run(main(*sys.argv[1:]))
