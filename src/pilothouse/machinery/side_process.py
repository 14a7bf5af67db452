"""Processes that do one thing for this one, each a script of ours that is spoken to over a socket.

They are run without site-packages and without what users have set up for Python, so that they are there in a few
milliseconds. A script gets the number of its socket as its last argument, and ends when nobody is at the other end.
"""

from __future__ import annotations

import socket
import subprocess
import sys


def start_side_process(
    script: str, argument: str, kind: int = socket.SOCK_STREAM
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """The process, and our end of its socket. Raises OSError, for want of descriptors, say."""
    here, there = socket.socketpair(socket.AF_UNIX, kind)
    try:
        with there:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", script, argument, str(there.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[there.fileno()],
            )
    except BaseException:
        here.close()
        raise
    return process, here
