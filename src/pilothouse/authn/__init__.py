"""Authentication: who is asking. One module for each way of proving it, and the union that tries them."""
