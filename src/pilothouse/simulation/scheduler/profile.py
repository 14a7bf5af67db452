"""The default profile: filters in the order in which they are asked, and scores with their weights."""

from __future__ import annotations

from typing import Final

from pilothouse.simulation.scheduler.filters import devices, nodes, pod_affinity, resources, topology_spread, volumes
from pilothouse.simulation.scheduler.filters.verdict import Filter
from pilothouse.simulation.scheduler.scores import devices as device_scores
from pilothouse.simulation.scheduler.scores import nodes as node_scores
from pilothouse.simulation.scheduler.scores import pods as pod_scores
from pilothouse.simulation.scheduler.scores.score import Score

FILTERS: Final[tuple[Filter, ...]] = (
    nodes.node_name,
    nodes.node_unschedulable,
    nodes.taint_toleration,
    nodes.node_affinity,
    resources.node_ports,
    resources.node_resources_fit,
    volumes.volume_restrictions,
    volumes.node_volume_limits,
    volumes.volume_binding,
    volumes.volume_zone,
    topology_spread.pod_topology_spread,
    pod_affinity.inter_pod_affinity,
    devices.dynamic_resources,
)

SCORES: Final[tuple[tuple[Score, int], ...]] = (
    (node_scores.taint_toleration, 3),
    (node_scores.node_affinity, 2),
    (node_scores.least_allocated, 1),
    (pod_scores.pod_topology_spread, 2),
    (pod_scores.inter_pod_affinity, 2),
    (device_scores.dynamic_resources, 2),
    (node_scores.balanced_allocation, 1),
    (node_scores.image_locality, 1),
)
