"""Certificate signing requests: approved, signed and cleaned up; trust anchors published."""
