"""A model checker for writes, lists and watches: random clients, faults, and a history that is held against a model."""
