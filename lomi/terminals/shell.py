"""How bash is started: the user's own start-up first, then our marks; a short allow-listed environment."""

from collections.abc import Mapping

from lomi.core.inside import TERMINAL_MARK

KEPT_NAMES = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME")
COLUMNS, ROWS = 120, 40

# The nonce is an unexported variable and this file goes at the first prompt: marks are evidence from an honest shell,
# not a wall against a hostile one. PS0 is printed after a command is read and before it runs; an empty line prints
# none.
_RC = r"""
[ -f /etc/bash.bashrc ] && . /etc/bash.bashrc
[ -f ~/.bashrc ] && . ~/.bashrc
__lomi_nonce='%(nonce)s'
__lomi_ended() {
    local code=$?
    printf '\e]133;D;%%s;%%s\a\e]133;A;%%s\a' "$code" "$__lomi_nonce" "$__lomi_nonce"
    return "$code"
}
__lomi_ready='\[\e]133;B;%(nonce)s\a\]'
__lomi_prompt() {
    local code=$?
    case "$PS1" in *"$__lomi_ready") ;; *) PS1="$PS1$__lomi_ready" ;; esac
    return "$code"
}
PROMPT_COMMAND=(__lomi_ended "${PROMPT_COMMAND[@]}" __lomi_prompt)
PS0='\e]133;C;%(nonce)s\a'"$PS0"
HISTFILE=
"""


def rc_text(nonce: str) -> str:
    """The start-up file of one terminal."""
    return _RC % {"nonce": nonce}


def environment_for(environment: Mapping[str, str]) -> dict[str, str]:
    """What a terminal inherits: a short list of names and the locale.

    Never tokens, agent sockets or our own settings.
    """
    kept = {name: value for name, value in environment.items() if name in KEPT_NAMES or name.startswith("LC_")}
    return {**kept, "TERM": "xterm-256color", TERMINAL_MARK: "1"}
