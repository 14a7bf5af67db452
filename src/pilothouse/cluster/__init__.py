"""One Kubernetes cluster inside a process: storage under one root, who may do what, and the chain of three servers."""
