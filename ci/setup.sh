# Sourced by the commands in this folder: makes .venv in the checkout and says what it installs. Touches nothing else without saying so.
# After it, $python is the venv's interpreter. SETUP_GROUPS="dev" adds the development tools.

lomi_say() { printf '%s\n' "$*" >&2; }
lomi_stop() { lomi_say "lomi: $1"; [ -n "${2:-}" ] && lomi_say "hint: $2"; exit 1; }

root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=${LOMI_VENV:-$root/.venv}
python=$venv/bin/python

lomi_base_python() {
    local candidate
    for candidate in python3 python3.14 python3.13 python3.12 python3.11 python; do
        if command -v "$candidate" >/dev/null 2>&1 &&
            "$candidate" -c 'import sys; raise SystemExit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}

lomi_venv() {
    local groups=${SETUP_GROUPS:-} stamp wanted base flag group
    stamp=$venv/.lomi-setup
    wanted=$(cat "$root/pyproject.toml" <(printf '%s' "$groups $root") | sha256sum | cut -d' ' -f1)
    # A venv with more groups serves a command that needs fewer.
    if [ -x "$python" ] && grep -qxF "$wanted" "$stamp" 2>/dev/null; then return 0; fi
    base=$(lomi_base_python) || lomi_stop "Python 3.11 or newer is needed; found: $(python3 --version 2>&1 || echo none)" \
        "install python3.11 (on Debian: apt install python3 python3-venv)"
    "$base" -c 'import ensurepip, venv' 2>/dev/null || lomi_stop "$base has no venv module" "on Debian: apt install python3-venv"
    lomi_say "setting up $venv with $("$base" --version 2>&1) (about 300 MB, only in this folder)"
    [ -x "$python" ] || "$base" -m venv "$venv" || lomi_stop "the folder $venv can't be made" \
        "set LOMI_VENV to a folder that can be written"
    "$python" -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1' || lomi_stop "pip can't be installed from its index" \
        "check the network, or point pip at a mirror (PIP_INDEX_URL)"
    flag=()
    for group in $groups; do flag+=(--group "$root/pyproject.toml:$group"); done
    lomi_say "installing lomi and what it needs with pip${groups:+ (and: $groups)}"
    # An earlier pip of the environment may have switched bytecode off; a venv without it starts slowly every time.
    env -u PYTHONDONTWRITEBYTECODE "$python" -m pip install --quiet --disable-pip-version-check --compile \
        -e "$root" ${flag[@]+"${flag[@]}"} || lomi_stop "pip could not install lomi" "see pip's own message above"
    env -u PYTHONDONTWRITEBYTECODE "$python" -m compileall -q "$root/lomi" "$root/devices" "$root/browser" "$root/emulator_images" 2>/dev/null || true
    printf '%s\n' "$wanted" >>"$stamp"
}

lomi_apt() {
    # Installs Debian packages when this is root on Debian; says so, and returns 1 elsewhere.
    command -v apt-get >/dev/null 2>&1 || return 1
    [ "$(id -u)" = 0 ] || return 1
    lomi_say "installing with apt-get: $*"
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 && return 0
    apt-get update -qq >/dev/null 2>&1
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1
}

lomi_chromium() {
    # Headless Chromium from the system, else Playwright's own download.
    local name
    for name in chromium-headless-shell chromium; do
        if command -v "$name" >/dev/null 2>&1 || [ -x "/usr/lib/chromium/$name" ]; then return 0; fi
    done
    if "$python" -c 'from browser.process import find_engine; raise SystemExit(find_engine(headed=False, chosen=None) is None)' \
        2>/dev/null; then return 0; fi
    lomi_apt chromium-headless-shell && return 0
    lomi_say "no Chromium on this system: downloading Playwright's own (about 120 MB, into Playwright's cache in your home)"
    "$python" -m playwright install chromium --only-shell >&2 && return 0
    lomi_stop "no Chromium can be had here" "on Debian: apt install chromium-headless-shell"
}
