# Sourced by the commands in this folder: makes .venv in the checkout and says what it installs, where and how big. Touches
# nothing else without saying so. After it, $python is the venv's interpreter.
#
# SETUP_GROUPS="dev" adds the development tools; LOMI_VENV names another folder. Of the command's arguments it takes `--yes`
# (or LOMI_YES=1) away: whatever it would ask is then answered with yes. Interrupted at any moment, its next run recovers.

# A path as a shell reads it back, for commands that a person is to copy.
lomi_word() {
    local quote="'\\''"
    case $1 in *[!A-Za-z0-9_./-]*) printf "'%s'" "${1//\'/$quote}" ;; *) printf '%s' "$1" ;; esac
}
lomi_say() { printf '%s\n' "$*" >&2; }
lomi_stop() { lomi_say "lomi: $1"; [ -n "${2:-}" ] && lomi_say "hint: $2"; exit 1; }

trap 'lomi_say "lomi: interrupted; the same command again goes on from here"; exit 130' INT

root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=${LOMI_VENV:-$root/.venv}
case $venv in /*) ;; *) venv=${OLDPWD:-$PWD}/$venv ;; esac
python=$venv/bin/python
yes=${LOMI_YES:-}
for lomi_one in "$@"; do
    shift
    if [ "$lomi_one" = --yes ]; then yes=1; else set -- "$@" "$lomi_one"; fi
done

lomi_base_python() {
    # Not the venv's own, which is on PATH where it is activated: it goes when the venv is made again.
    local candidate PATH=":$PATH:"
    PATH=${PATH//:"$venv/bin":/:}
    PATH=${PATH#:}
    PATH=${PATH%:}
    for candidate in python3 python3.14 python3.13 python3.12 python3.11 python; do
        if command -v "$candidate" >/dev/null 2>&1 &&
            "$candidate" -c 'import sys; raise SystemExit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}

lomi_asked() {
    # Asks before a change of the system. Root without a terminal is a machine's set-up: it is told, not asked.
    local answer
    if [ -n "$yes" ]; then return 0; fi
    if [ -t 0 ] && [ -t 2 ]; then
        printf '%s [y/N] ' "$1" >&2
        read -r answer || return 1
        case $answer in y | Y | yes) return 0 ;; *) return 1 ;; esac
    fi
    [ "$(id -u)" = 0 ]
}

lomi_apt() {
    # Installs Debian packages, as root or with sudo, after asking; returns 1 where that can't be or isn't wanted.
    local as=()
    command -v apt-get >/dev/null 2>&1 || return 1
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null 2>&1 || return 1
        if [ -z "$yes" ] && ! [ -t 0 ]; then return 1; fi
        as=(sudo)
        [ -t 0 ] || as=(sudo -n)
    fi
    lomi_asked "Install $* for the whole system (${as[*]+${as[*]} }apt-get install)?" || return 1
    lomi_say "installing with ${as[*]+${as[*]} }apt-get, for the whole system: $*"
    if ${as[@]+"${as[@]}"} apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1; then return 0; fi
    ${as[@]+"${as[@]}"} apt-get update -qq >/dev/null 2>&1
    ${as[@]+"${as[@]}"} apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1
}

lomi_ready() {
    # Whether the venv is whole, of this place, and has what is wanted. One with more groups serves a command that needs fewer.
    [ -x "$python" ] && ! [ -e "$venv/.lomi-busy" ] && grep -qxF "$1" "$venv/.lomi-setup" 2>/dev/null &&
        "$python" -I -c 'import click, lomi' 2>/dev/null
}

lomi_help() {
    # Whether help was asked for and can be had without a set-up: in full from an environment that is there, whatever else
    # that lacks; where there is none, what stands at the head of the command, and that is all.
    local word
    for word in "$@"; do
        case $word in
            -h | --help)
                if "$python" -I -c 'import click, lomi' 2>/dev/null; then return 0; fi
                sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$root/ci/$(basename "$0")"
                exit 0 ;;
            --) return 1 ;;
        esac
    done
    return 1
}

lomi_venv() {
    local groups=${SETUP_GROUPS:-} wanted base
    # Of the project file only what says what is installed: another rule of a linter installs nothing.
    wanted=$({ printf '%s %s %s' "$groups" "$venv" "$root"; sed '/^\[tool\.pytest/,$d' "$root/pyproject.toml"; } | cksum)
    if lomi_ready "$wanted"; then return 0; fi
    base=$(lomi_base_python) || lomi_stop "Python 3.11 or newer is needed; found: $(python3 --version 2>&1 || echo none)" \
        "install it (on Debian 12 or newer: apt install python3 python3-venv) and have it on PATH"
    "$base" -c 'import ensurepip, venv' 2>/dev/null || lomi_apt python3-venv ||
        lomi_stop "$base has no venv module" "on Debian: apt install python3-venv"
    mkdir -p "$venv" 2>/dev/null && [ -w "$venv" ] ||
        lomi_stop "the folder $venv can't be made or written" "set LOMI_VENV to a folder that can"
    # One at a time: two commands of this folder may be started together.
    if command -v flock >/dev/null 2>&1; then
        exec 9<"$venv"
        flock -n 9 || { lomi_say "another command sets up $venv; waiting for it" && flock 9; }
    fi
    lomi_ready "$wanted" || (lomi_fill "$base" "$groups" "$wanted") || exit $?
    exec 9<&-
}

lomi_fill() {
    local base=$1 groups=$2 wanted=$3 made begun=$SECONDS flag=() group size=300
    [ -z "$groups" ] || size=500
    trap 'exit 130' INT
    made=$(cat "$venv/.lomi-made" 2>/dev/null || true)
    if [ -z "$made" ] && ! [ -e "$venv/pyvenv.cfg" ] && [ -n "$(ls -A "$venv")" ]; then
        lomi_stop "$venv holds other things" "set LOMI_VENV to a folder that is empty or isn't there"
    fi
    # What was interrupted, moved, or lost its Python is made again from nothing; only what this program made.
    if [ -n "$made" ] && { [ -e "$venv/.lomi-busy" ] || [ "$made" != "$venv" ] || ! "$python" -m pip --version >/dev/null 2>&1; }; then
        lomi_say "$venv was left unfinished, or was moved: making it again"
        find "$venv" -mindepth 1 -maxdepth 1 ! -name '.lomi-*' -exec rm -rf {} +
        rm -f "$venv/.lomi-setup"
    fi
    if ! [ -e "$venv/pyvenv.cfg" ]; then printf '%s\n' "$venv" >"$venv/.lomi-made"; fi
    : >"$venv/.lomi-busy" || lomi_stop "nothing can be written into $venv" "look for room on its disk: df -h $(lomi_word "$venv")"
    lomi_say "setting up $venv with $("$base" --version 2>&1): lomi and what it needs${groups:+, and: $groups}"
    lomi_say "it takes about $size MB, only in this folder; pip keeps what it fetches in its own cache, as you have set it"
    if ! [ -x "$python" ]; then "$base" -m venv "$venv" || lomi_stop "no venv can be made in $venv" "Python's own message is above"; fi
    for group in $groups; do flag+=(--group "$root/pyproject.toml:$group"); done
    # pip reads dependency groups since 25.1.
    if [ -n "$groups" ] && ! "$python" -m pip install --help 2>/dev/null | grep -q -e --group; then
        lomi_pip --upgrade 'pip>=25.1'
    fi
    # A venv without bytecode starts slowly every time, and the person's setting may have switched it off.
    lomi_pip --compile -e "$root" ${flag[@]+"${flag[@]}"}
    env -u PYTHONDONTWRITEBYTECODE "$python" -m compileall -q \
        "$root/lomi" "$root/devices" "$root/browser" "$root/emulator_images" >/dev/null 2>&1 || true
    printf '%s\n' "$wanted" >>"$venv/.lomi-setup"
    rm -f "$venv/.lomi-busy"
    lomi_say "set up in $((SECONDS - begun)) s, $(du -sm "$venv" 2>/dev/null | cut -f1) MB"
}

lomi_pip() {
    local index
    env -u PYTHONDONTWRITEBYTECODE "$python" -m pip install --quiet --disable-pip-version-check "$@" && return 0
    index=${PIP_INDEX_URL:-$("$python" -m pip config get global.index-url 2>/dev/null || true)}
    lomi_say "lomi: pip can't install: $*"
    lomi_say "hint: pip's own message is above; it asks ${index:-https://pypi.org/simple}."
    lomi_say "      Behind a mirror set PIP_INDEX_URL or pip.conf. Without a network, on a machine like this one that has it:"
    lomi_say "          python3 -m pip wheel -w wheels hatchling editables 'pip>=25.1' $(lomi_word "$root")"
    lomi_say "      then here: PIP_NO_INDEX=1 PIP_FIND_LINKS=/path/to/wheels, and the same command again."
    exit 1
}

lomi_caches() {
    # What tools remember between runs goes into the venv where the checkout can't be written.
    if [ -w "$root" ]; then return 0; fi
    export RUFF_CACHE_DIR=$venv/.caches/ruff MYPY_CACHE_DIR=$venv/.caches/mypy
    export IMPORT_LINTER_CACHE_DIR=$venv/.caches/import_linter HYPOTHESIS_STORAGE_DIRECTORY=$venv/.caches/hypothesis
    export PYTEST_ADDOPTS="${PYTEST_ADDOPTS:-} -o 'cache_dir=$venv/.caches/pytest'"
}

lomi_chromium() {
    # Headless Chromium: the system's, or Playwright's own where that is there; else apt's, else Playwright's download.
    local place
    if "$python" -I -c 'from browser.process import find_engine; raise SystemExit(find_engine(headed=False) is None)'; then return 0; fi
    place=$("$python" -m playwright install --dry-run --only-shell chromium 2>/dev/null | sed -n 's/^ *Install location: *//p' | head -n 1)
    if [ -e "$place/INSTALLATION_COMPLETE" ]; then return 0; fi
    lomi_say "there is no Chromium yet"
    lomi_apt chromium-headless-shell && return 0
    lomi_say "downloading Playwright's headless Chromium (about 120 MB) into $place"
    "$python" -m playwright install chromium --only-shell >&2 && return 0
    lomi_say "lomi: no Chromium can be had here, and $(basename "$0") needs one"
    lomi_say "hint: on Debian: apt install chromium-headless-shell. Behind a mirror: PLAYWRIGHT_DOWNLOAD_HOST."
    lomi_say "      Phones and terminals work without: $(lomi_word "$venv")/bin/lomi up . --phone paper-36"
    exit 1
}
