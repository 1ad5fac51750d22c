"""The fixture `page`, where pytest-playwright does not have that name."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from lomi.client.lab import Page


@pytest.fixture
def page(lomi_page: "Page") -> "Page":
    """A blank page in a browser context of its own."""
    return lomi_page
