"""What begins when a cluster is served: a file for each controller or family of them, and the list of all."""
