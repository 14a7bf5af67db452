"""The second server: every built-in resource."""
