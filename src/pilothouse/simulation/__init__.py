"""What makes a cluster move without machines: a scheduler and simulated nodes. Imported only when switched on."""
