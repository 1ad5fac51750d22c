"""MCP: the session that runs in the broker, and the helper process that pipes stdio to it."""
