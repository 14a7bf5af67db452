"""coordination.k8s.io: leases and who stands for them."""
