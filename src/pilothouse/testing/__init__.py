"""What users of Pilothouse import in their own tests."""
