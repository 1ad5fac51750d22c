"""The demo: an agent drives a phone and a page through real MCP, and what it leaves is judged by their own records.

It is a client like any other: it starts `lomi up` and `lomi mcp` as processes and knows nothing of the broker's inside.
"""
