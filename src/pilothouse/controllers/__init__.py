"""The controller runtime: following objects, and reconciling what they ask for."""
