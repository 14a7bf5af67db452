"""The Node authorizer: a kubelet may read what the pods on its node need, and nothing of other nodes."""
