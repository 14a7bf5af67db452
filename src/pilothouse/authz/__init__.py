"""Authorization: who may do what. Each authorizer in its own module, and the union that asks them in order."""
