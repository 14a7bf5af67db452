"""Who did what, when and with what outcome: the policy that says what is written down, events, and where they go."""
