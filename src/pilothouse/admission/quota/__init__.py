"""Resource quotas: what objects use, which quotas that concerns, and charging them before the object is stored."""
