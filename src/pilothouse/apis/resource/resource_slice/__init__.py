"""Resource slices."""
