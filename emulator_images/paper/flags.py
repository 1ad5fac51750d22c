"""The command line of the real emulator, as far as tools use it."""

from dataclasses import dataclass, field

_SWITCHES = frozenset({
    "no-window", "no-audio", "noaudio", "no-boot-anim", "no-snapshot", "no-snapshot-load", "no-snapshot-save",
    "no-snapstorage", "force-snapshot-load", "read-only", "wipe-data", "skip-adb-auth", "no-metrics",
    "metrics-collection", "verbose", "show-kernel", "writable-system", "no-accel", "grpc-use-token", "grpc-use-jwt",
    "no-cache", "no-jni", "no-skin", "noskin", "no-sim", "nosim", "no-passive-gps", "no-location-ui",
    "no-hidpi-scaling", "no-nested-warnings", "no-qt", "no-direct-adb", "detect-image-hang", "fuchsia", "ranchu",
    "qt-hide-window", "netfast", "nocache", "no-throttle", "wifi-client-port", "lowram", "check-snapshot-loadable",
    "studio-params",
})  # fmt: skip
_WITH_VALUE = frozenset({
    "avd", "port", "ports", "gpu", "memory", "cores", "accel", "prop", "timezone", "change-locale", "change-language",
    "change-country", "grpc", "grpc-allowlist", "grpc-tls-key", "grpc-tls-cer", "grpc-tls-ca", "idle-grpc-timeout",
    "snapshot", "snapstorage", "camera-back", "camera-front", "feature", "netdelay", "netspeed", "dns-server",
    "http-proxy", "partition-size", "sysdir", "system", "kernel", "ramdisk", "data", "datadir", "initdata", "cache",
    "sdcard", "skin", "skindir", "dpi-device", "scale", "screen", "phone-number", "id", "logcat", "report-console",
    "delay-adb", "engine", "selinux", "shell-serial", "tcpdump", "debug", "window-size", "append-userspace-opt",
    "quit-after-boot", "restart-when-stalled", "virtualscene-poster", "crash-report-mode", "sim-access-rules-file",
    "webcam-list", "vsync-rate", "packet-streamer-endpoint", "netsim-args",
})  # fmt: skip
_ANSWERED = frozenset({"list-avds", "version", "help", "accel-check"})


class UnknownFlagError(Exception):
    """Raised for a flag the emulator does not know; the text is the emulator's."""


@dataclass(frozen=True, slots=True)
class Flags:
    """What the command line asked for. `question` names a flag that is answered without a boot."""

    avd: str = ""
    console_port: int | None = None
    adb_port: int | None = None
    grpc_port: int | None = None
    grpc_jwt: bool = False
    read_only: bool = False
    wipe_data: bool = False
    skip_adb_auth: bool = False
    timezone: str | None = None
    locale: str | None = None
    question: str | None = None
    properties: dict[str, str] = field(default_factory=dict)


def parse(arguments: list[str]) -> Flags:
    """Read the emulator's flags.

    Raises:
        UnknownFlagError: a flag is not known, lacks its value, or a port is no number.
    """
    switches: set[str] = set()
    values: dict[str, str] = {}
    properties: dict[str, str] = {}
    queue = list(arguments)
    while queue:
        word = queue.pop(0)
        if word.startswith("@") and len(word) > 1:
            values["avd"] = word[1:]
            continue
        name = word.removeprefix("-")
        if word.startswith("-") and name in _SWITCHES | _ANSWERED:
            switches.add(name)
        elif word.startswith("-") and name in _WITH_VALUE:
            if not queue:
                raise UnknownFlagError(f"option {word} must be followed by a value")
            value = queue.pop(0)
            if name == "prop":
                key, _, setting = value.partition("=")
                properties[key] = setting
            values[name] = value
        else:
            raise UnknownFlagError(f"unknown option: {word}\nplease use -help for a list of valid options")
    console, adb = _ports(values)
    return Flags(
        avd=values.get("avd", ""),
        console_port=console,
        adb_port=adb,
        grpc_port=_port(values["grpc"], "-grpc") if "grpc" in values else None,
        grpc_jwt="grpc-use-jwt" in switches,
        read_only="read-only" in switches,
        wipe_data="wipe-data" in switches,
        skip_adb_auth="skip-adb-auth" in switches,
        timezone=values.get("timezone"),
        locale=values.get("change-locale"),
        question=next(iter(sorted(switches & _ANSWERED)), None),
        properties=properties,
    )


def _ports(values: dict[str, str]) -> tuple[int | None, int | None]:
    if "ports" in values:
        console, comma, adb = values["ports"].partition(",")
        if not comma:
            raise UnknownFlagError("option -ports must be followed by two comma separated ports")
        return _port(console, "-ports"), _port(adb, "-ports")
    if "port" in values:
        console_port = _port(values["port"], "-port") & ~1
        return console_port, console_port + 1
    return None, None


def _port(text: str, flag: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise UnknownFlagError(f"option {flag}: invalid port number: {text}")
    return int(text)
