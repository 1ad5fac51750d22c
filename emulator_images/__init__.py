"""Reproducible device images, and `paper`, the simulated phone."""
