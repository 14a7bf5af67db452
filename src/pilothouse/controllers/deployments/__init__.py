"""Deployments: a replica set for each revision of the template, and the way from one to the next.

controller.py      which deployment to look at, and what to do with it
revisions.py       the replica sets of a deployment: which is new, which are old, revision numbers, history
scaling.py         how large each replica set is to be: rolling update, recreate, proportional scaling
status.py          counts and conditions: available, progressing, timed out, failing
"""

from __future__ import annotations

from pilothouse.controllers.deployments.controller import DeploymentController
from pilothouse.controllers.manager.context import ControllerContext


def start(context: ControllerContext) -> None:
    """Start the deployment controller."""
    DeploymentController(context).start(context.supervisor)
