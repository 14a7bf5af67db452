"""HTTP/1.0 and 1.1 as a carrier of exchanges: one after the other on a connection."""
