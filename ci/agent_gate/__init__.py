"""The agent gate: written tasks, a driver for any model, and checks on what really happened."""
