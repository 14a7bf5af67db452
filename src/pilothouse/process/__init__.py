"""What a process has once: its store, sockets, TLS, signals and metrics. It holds a cluster, and could hold several."""
