"""events.k8s.io: the strict face of core events."""
