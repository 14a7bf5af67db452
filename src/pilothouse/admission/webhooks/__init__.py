"""Webhooks: other people's servers that judge or change objects, as webhook configurations say."""
