"""The browser of whoever runs a command."""

import os

from browser.choice import BrowserChoice, BrowserChoiceError, browser_choice
from browser.process import find_engine
from lomi.cli.failing import fail


def chosen_browser() -> BrowserChoice:
    """What the environment chooses; ends the command when that can't be run, also windows that no program has."""
    try:
        choice = browser_choice(os.environ)
    except BrowserChoiceError as error:
        fail(str(error), error.hint)
    if choice.headed and find_engine(headed=True, chosen=choice.executable) is None:
        fail("there is no Chromium with windows", "on Debian: apt install chromium; or name one with LOMI_CHROMIUM")
    return choice
