"""The plug-ins of kube-apiserver, one a file or a folder. ``catalogue`` says which file has which."""
