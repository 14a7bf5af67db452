"""What the Kubernetes API is made of, free of servers and storage: names, values, errors, schemas, codecs, merges."""
