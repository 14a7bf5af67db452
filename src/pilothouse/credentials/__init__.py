"""The certificates, keys and kubeconfig that a server makes for itself; knows nothing of flags or servers."""
