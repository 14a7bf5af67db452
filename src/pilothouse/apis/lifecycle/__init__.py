"""lifecycle.k8s.io: evictions of pods and requests for them."""
