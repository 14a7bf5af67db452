"""The program of a worker process, ``python -m pilothouse.cli.worker DESCRIPTOR…``: started by the owner alone.

What it is told comes on standard input; the descriptors are sockets to the owner.
"""

from __future__ import annotations

import pickle
import sys

from pilothouse.cli.logging import set_up_logging


def main() -> int:
    """Serve until the owner says stop, or has gone."""
    try:
        options, count = pickle.loads(sys.stdin.buffer.read())  # noqa: S301 (from the server that started it)
    except (EOFError, pickle.UnpicklingError):
        print("this program is started by a server with --workers, and by nobody else", file=sys.stderr)
        return 1
    set_up_logging(options.logs)
    from pilothouse.process.workers.membership import serve_member  # the whole server, once it is known to be wanted

    return serve_member(options, count, [int(each) for each in sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
