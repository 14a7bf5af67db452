"""The single demands of the levels. A check answers None, or why a pod is refused: the reason and the detail."""
