"""The adb side: a server of our own, a small asyncio client for it, and kept shell lanes."""
