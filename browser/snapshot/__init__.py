"""Snapshots of a page: taking them, the refs they hand out, and their short rendering."""
