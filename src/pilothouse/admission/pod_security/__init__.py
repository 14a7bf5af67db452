"""The Pod Security Standards: levels, versions of levels, the checks behind them, and how labels choose among them."""
