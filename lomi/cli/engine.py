"""The browser of whoever runs a command."""

import os
from pathlib import Path

from browser.choice import BrowserChoiceError, browser_choice
from browser.process import find_engine
from lomi.cli.failing import fail


def chosen_engine() -> Path | None:
    """The program that the environment chooses, else one that is found; None where none is.

    Ends the command when the environment chooses a browser that can't be run, also windows that no program has.
    """
    try:
        choice = browser_choice(os.environ)
    except BrowserChoiceError as error:
        fail(str(error), error.hint)
    found = find_engine(headed=choice.headed, chosen=choice.executable)
    if found is None and choice.headed:
        fail("there is no Chromium with windows", "on Debian: apt install chromium; or name one with LOMI_CHROMIUM")
    return found
