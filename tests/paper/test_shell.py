"""The phone's shell over real adb: grammar, streams, exit codes and commands."""

import pytest

from paper.lab import RunningPhone

LINES = [
    ("echo hi; echo err >&2; exit 3", "hi\n", "err\n", 3),
    ("false && echo a || echo b", "b\n", "", 0),
    ("! false; echo $?", "0\n", "", 0),
    ('x=1; y="$x 2"; echo \'$x\' $y "$y"', "$x 1 2 1 2\n", "", 0),
    ("echo $(echo a b) `echo c`", "a b c\n", "", 0),
    ("for i in 1 2 3; do [ $i = 2 ] && continue; echo $i; done", "1\n3\n", "", 0),
    ("i=0; while [ $i -lt 3 ]; do i=$((i + 1)); done; echo $i", "3\n", "", 0),
    ("if [ -d /sdcard ]; then echo yes; else echo no; fi", "yes\n", "", 0),
    ("case abc in a*) echo one;; *) echo two;; esac", "one\n", "", 0),
    ("f() { echo $1-$#; }; f a b", "a-2\n", "", 0),
    ("(exit 4); echo $?", "4\n", "", 0),
    ("printf '%s|%d\\n' a 7 b 8", "a|7\nb|8\n", "", 0),
    ("echo one two | grep -o two | wc -l", "1\n", "", 0),
    ("echo ${missing:-fallback} ${#PATH}x | cut -d' ' -f1", "fallback\n", "", 0),
    ("A=7 sh -c 'echo $A $0'", "7 sh\n", "", 0),
    ("cat <<X\nline $((6 * 7))\nX", "line 42\n", "", 0),
    ("echo a b >/data/local/tmp/t; read x y </data/local/tmp/t; echo $y; rm /data/local/tmp/t", "b\n", "", 0),
    ("seq_missing", "", "/system/bin/sh: seq_missing: inaccessible or not found\n", 127),
    ("cat /nope", "", "cat: /nope: No such file or directory\n", 1),
    ("rm -f /nope && echo success", "success\n", "", 0),
    ("cd /nope", "", "/system/bin/sh: cd: /nope: No such file or directory\n", 2),
    ("echo x > /system/y", "", "/system/bin/sh: can't create /system/y: Read-only file system\n", 1),
    ("echo ';$()&|`' \"\\$HOME\"", ";$()&|` $HOME\n", "", 0),
    ("app_process / Main; echo $?", "134\n", "Aborted\n", 0),
    ("run-as no.such true", "", "run-as: unknown package: no.such\n", 1),
    ("cmd clipboard get", "", "No shell command implementation.\n", 255),
    ("CLASSPATH=/x nohup app_process / Main >/dev/null 2>&1 & echo started", "started\n", "", 0),
    ("sleep 0.1 && echo later & echo first; wait; echo last", "first\nlater\nlast\n", "", 0),
    ("sleep 60 & echo not waited for", "not waited for\n", "", 0),
    ("echo é中🙂 | cat", "é中🙂\n", "", 0),
]


@pytest.mark.parametrize(("line", "out", "err", "code"), LINES, ids=[line[0][:40] for line in LINES])
def test_shell_line(shared_phone: RunningPhone, line: str, out: str, err: str, code: int) -> None:
    """A line gives the output, the errors and the exit code that Android's shell gives."""
    result = shared_phone.adb("shell", line)
    assert (result.out, result.err, result.code) == (out, err, code)


def test_syntax_error_runs_nothing(shared_phone: RunningPhone) -> None:
    """A line that is no shell script is refused before any of it runs."""
    result = shared_phone.adb("shell", "echo before; if true; then echo x")
    assert (result.code, result.out) == (1, "")
    assert "syntax error" in result.err


def test_script_on_standard_input(shared_phone: RunningPhone) -> None:
    """Lines piped into `adb shell` run one by one; the exit code is the last one's."""
    result = shared_phone.adb("shell", stdin=b"echo a\nx=2\necho $x\nfalse\n")
    assert (result.out, result.code) == ("a\n2\n", 1)


def test_standard_input_reaches_a_command_exactly(shared_phone: RunningPhone) -> None:
    """Bytes of any kind pass through `cat` unchanged, and closing the input ends it."""
    payload = bytes(range(256)) * 600
    assert shared_phone.adb("shell", "-T", "cat", stdin=payload).raw == payload


def test_exec_out_is_binary_clean(shared_phone: RunningPhone) -> None:
    """`exec-out screencap -p` gives PNG bytes and nothing else."""
    raw = shared_phone.adb("exec-out", "screencap", "-p").raw
    assert raw.startswith(b"\x89PNG\r\n\x1a\n")
    assert raw.endswith(b"IEND\xaeB`\x82")


def test_terminal_shell_echoes_and_prompts(shared_phone: RunningPhone) -> None:
    """A forced terminal runs the command as well."""
    assert shared_phone.adb("shell", "-t", "-t", "echo x").out.replace("\r", "") == "x\n"


def test_properties_say_that_it_is_simulated(shared_phone: RunningPhone) -> None:
    """The phone is an emulator with an AVD name, and says in model and property that it is not Android."""
    out = shared_phone.shell(
        "getprop ro.lomi.simulated; getprop ro.product.model; getprop ro.kernel.qemu; getprop qemu.avd_name; "
        "getprop sys.boot_completed; getprop no.such; getprop no.such fallback"
    )
    assert out.splitlines() == ["true", "Lomi Paper", "1", "phone", "1", "", "fallback"]
    assert "[ro.build.version.sdk]: [36]" in shared_phone.shell("getprop")


def test_logcat_formats_and_filters(shared_phone: RunningPhone) -> None:
    """Logcat prints by format, filters by tag and level, and ends with -d."""
    shared_phone.shell("log -t Marker -p w 'a marked line'; log -t Other nothing")
    out = shared_phone.adb("logcat", "-d", "-v", "brief", "-s", "Marker:V").out
    assert "W/Marker  ( 3000): a marked line" in out
    assert "Other" not in out
    assert "01-01 09:00:00" in shared_phone.adb("logcat", "-d", "-v", "threadtime").out


def test_windows_and_displays_are_told(shared_phone: RunningPhone) -> None:
    """Focus, size, density, rotation and power are told in the forms that tools parse."""
    out = shared_phone.shell(
        "wm size; wm density; dumpsys window displays; dumpsys display; dumpsys input; dumpsys power"
    )
    assert "Physical size: 720x1280\nPhysical density: 320\n" in out
    assert "mCurrentFocus=Window{" in out
    assert "com.android.launcher3/com.android.launcher3.Launcher}" in out
    assert "orientation=0" in out
    assert "SurfaceOrientation: 0" in out
    assert "mWakefulness=Awake" in out


def test_unknown_services_are_missing(shared_phone: RunningPhone) -> None:
    """A service that does not exist is said to be missing, with adb's exit code for it."""
    result = shared_phone.adb("shell", "cmd nonsense x")
    assert (result.err, result.code) == ("cmd: Can't find service: nonsense\n", 20)
    assert shared_phone.shell("service check window; service check nonsense") == (
        "Service window: found\nService nonsense: not found\n"
    )
