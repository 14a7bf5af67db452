"""How each kind of patch is read and applied."""
