"""Jobs, and the cron jobs that make them on a schedule."""
