"""The wire: listening, TLS, HTTP/1.1 and connection upgrades. Knows nothing of Kubernetes and imports nothing above."""
