"""Resource claims."""
