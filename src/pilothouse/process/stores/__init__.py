"""What ``pilothouse store`` does: look at a store, copy one into another, save and bring back the embedded one."""
