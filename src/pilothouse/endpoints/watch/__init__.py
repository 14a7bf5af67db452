"""How watches are served: events become bytes (`encoding`), and bytes reach connections (`delivery`, `websocket`)."""
