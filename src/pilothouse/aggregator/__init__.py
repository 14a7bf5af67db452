"""The first server: APIServices, and what they put behind the paths of their group versions."""
