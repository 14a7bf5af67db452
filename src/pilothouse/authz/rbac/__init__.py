"""Role-based access control: an index over roles and bindings, and everything that guards changes to them."""
