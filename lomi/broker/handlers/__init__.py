"""Handlers of the tools that the broker itself answers."""
