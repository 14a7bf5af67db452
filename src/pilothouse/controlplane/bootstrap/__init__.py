"""What a server makes sure of by itself when it starts: namespaces, policy, and its own service."""
