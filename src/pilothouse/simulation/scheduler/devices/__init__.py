"""Dynamic resource allocation: which devices a pod's resource claims get, and on which nodes they can be had."""
