"""Function libraries of the language, one module each: signatures with their implementations."""
