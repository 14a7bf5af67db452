"""``pilothouse envtest``: a stand-in for setup-envtest, whose binaries controller-runtime's envtest starts unchanged.

assets.py      the folder with kube-apiserver, etcd and kubectl, and the subcommands
etcd.py        what the ``etcd`` of the folder does: it answers health checks and says where the data is to be
apiserver.py   what its ``kube-apiserver`` does: ours, on the embedded store in that place
"""
