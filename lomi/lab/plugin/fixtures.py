"""The fixtures, but for `page`: that name is pytest-playwright's where it is installed."""

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from lomi.lab.plugin import desk_of

if TYPE_CHECKING:
    from lomi.client.lab import Lab, Page, Phone, Terminal


@pytest.fixture(scope="session")
def lab(request: pytest.FixtureRequest) -> Generator["Lab"]:
    """This process's session with the broker: the one that runs, or one that is started for the run."""
    with desk_of(request.config).connected() as connected:
        yield connected


@pytest.fixture
def phone(lab: "Lab", request: pytest.FixtureRequest) -> Generator["Phone"]:
    """A running phone under this test's own lease."""
    with desk_of(request.config).phone(lab, request) as leased:
        yield leased


@pytest.fixture
def lomi_page(lab: "Lab", request: pytest.FixtureRequest) -> Generator["Page"]:
    """A blank page in a browser context of its own."""
    with desk_of(request.config).page(lab) as opened:
        yield opened


@pytest.fixture
def terminal(lab: "Lab", request: pytest.FixtureRequest) -> Generator["Terminal"]:
    """A terminal in the project's root."""
    with desk_of(request.config).terminal(lab) as made:
        yield made
