"""A scheduler with the semantics of kube-scheduler's default profile, written against the API like any other client."""
