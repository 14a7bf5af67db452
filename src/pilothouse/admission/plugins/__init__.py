"""The plug-ins of the original, one a file or a folder. ``catalogue`` says which file has which."""
