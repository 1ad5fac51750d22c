"""Which browser the owner's environment chooses, and what it can't choose."""

from pathlib import Path

import pytest

from browser.choice import BrowserChoice, BrowserChoiceError, browser_choice


def test_windows_and_another_chromium_are_chosen_by_variables(tmp_path: Path) -> None:
    """Nothing is chosen by an empty variable either."""
    own = tmp_path / "chromium"
    own.touch(mode=0o755)
    assert browser_choice({}) == BrowserChoice(headed=False, executable=None)
    assert browser_choice({"LOMI_BROWSER": "", "LOMI_CHROMIUM": ""}) == BrowserChoice()
    assert browser_choice({"LOMI_BROWSER": "headless"}) == BrowserChoice()
    assert browser_choice({"LOMI_BROWSER": "headed", "DISPLAY": ":7"}, "linux").headed
    assert browser_choice({"LOMI_BROWSER": "headed"}, "darwin").headed
    assert browser_choice({"LOMI_CHROMIUM": str(own)}).executable == own


@pytest.mark.parametrize(
    ("environment", "said", "hint"),
    [
        ({"LOMI_BROWSER": "Headed"}, "LOMI_BROWSER is 'Headed'", "headless or headed"),
        ({"LOMI_BROWSER": "firefox"}, "Chromium's only", "headless or headed"),
        ({"LOMI_BROWSER": "webkit"}, "Chromium's only", "headless or headed"),
        ({"LOMI_BROWSER": "headed"}, "no display", "xvfb-run"),
        ({"LOMI_BROWSER": "headed", "DISPLAY": "", "WAYLAND_DISPLAY": "wayland-0"}, "no display", "xvfb-run"),
        ({"LOMI_CHROMIUM": "/nowhere/chromium"}, "no program is there", "whole path"),
        ({"LOMI_CHROMIUM": "chromium"}, "no program is there", "whole path"),
        ({"LOMI_CHROMIUM": "/"}, "no program is there", "whole path"),
        ({"LOMI_CHROMIUM": "/" + "a" * 300}, "no program is there", "whole path"),
        ({"LOMI_CHROMIUM": "/etc/passwd"}, "no program is there", "whole path"),
    ],
)
def test_what_can_not_be_chosen_says_what_can(environment: dict[str, str], said: str, hint: str) -> None:
    """A wish that can't be kept is no silent default."""
    with pytest.raises(BrowserChoiceError) as caught:
        browser_choice(environment, "linux")
    assert said in str(caught.value)
    assert hint in caught.value.hint
