"""Workloads: deployments, replica sets, stateful sets, daemon sets, and the revisions that the latter two keep."""
