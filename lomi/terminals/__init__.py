"""Real PTYs with a shell that says when its prompt is ready and how each command ended."""
