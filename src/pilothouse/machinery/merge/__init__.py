"""Ways of merging a change into an object."""
