"""The generic API server: what all three servers of the chain, and other people's aggregated servers, are built on."""
