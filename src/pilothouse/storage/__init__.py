"""Where objects live: backends keep one ordered log with a global revision, the cacher serves reads and watches."""
