"""Simulated nodes: Node objects kept alive, and a kubelet's report of pods whose containers only seem to run."""
