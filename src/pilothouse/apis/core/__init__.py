"""The core group: pods and everything around them."""
