"""Between the endpoints and the storage: the generic store, and the rules every write goes through."""
