"""HTTP/2: many exchanges on one connection, each on a stream of its own."""
