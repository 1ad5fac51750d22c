"""A picture on its way to a client; apart from the port, which clients need not import for it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Picture:
    """Encoded pixels that travel once, beside the JSON."""

    media_type: str
    content: bytes
