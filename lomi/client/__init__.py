"""The authenticated client of the broker: calls as JSON frames, many at once, with typed answers and errors."""
