"""CEL in admission: what expressions may name, and access checks that have to wait for their answer."""
