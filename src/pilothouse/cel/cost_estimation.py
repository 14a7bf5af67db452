from typing import Any
Cost=Any
SizeOfPath=Any
def estimate(root: Any, sizes: Any) -> Any: ...
