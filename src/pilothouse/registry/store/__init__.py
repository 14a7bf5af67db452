"""The generic store: one implementation of create, get, list, watch, update and delete for every resource."""
