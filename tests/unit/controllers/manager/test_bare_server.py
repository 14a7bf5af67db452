"""A server without controllers, scheduler and simulated nodes has nothing of them in memory."""

import subprocess
import sys

CODE = """
import sys
from pilothouse.controllers.manager.catalogue import CONTROLLERS
from pilothouse.testing.in_process import InProcessServer

with InProcessServer() as server:
    living = {f"pilothouse.controllers.{row.module}" for row in CONTROLLERS}
    print(sorted(name for name in sys.modules if name.startswith("pilothouse.simulation") or name in living))
"""
OWN = ["pilothouse.controllers.cluster_roles", "pilothouse.controllers.policy_types"]
"""What the API server itself can do by a flag."""


def test_nothing_is_imported_that_is_off():
    done = subprocess.run([sys.executable, "-c", CODE], check=True, capture_output=True, text=True)
    imported = done.stdout.strip().strip("[]").replace("'", "")
    assert [name for name in imported.split(", ") if name and name not in OWN] == []
