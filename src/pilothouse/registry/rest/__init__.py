"""The rules that hold for every resource before it is created, updated or deleted."""
