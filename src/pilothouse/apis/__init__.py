"""The built-in API: its types, its resources, and what is special about each of them."""
