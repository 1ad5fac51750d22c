"""Stand-ins for Google's `sdkmanager`, `avdmanager`, `android` and `emulator`: command lines, prompts, exit codes.

They fetch from the mirror that `SDK_TEST_BASE_URL` names, as the real ones do, and the `emulator` runs paper. What is
tested with them is a contract; that the real tools keep it is not shown here.
"""

import stat
import sys
from pathlib import Path

from device_rig import ROOT

_TOOL = """#!{python}
import hashlib, io, os, sys, urllib.error, urllib.request, zipfile
import xml.etree.ElementTree as tree
from pathlib import Path

LOCAL = ("<repository><localPackage path=\\"{{}}\\"><revision><major>{{}}</major></revision>"
         "<display-name>{{}}</display-name></localPackage></repository>")


def fetched(name):
    with urllib.request.urlopen(os.environ["SDK_TEST_BASE_URL"] + name) as answer:
        return answer.read()


def named(node, name):
    return [child for child in node.iter() if child.tag.rpartition("}}")[2] == name]


def offered(channel):
    found = {{}}
    for package in named(tree.fromstring(fetched("repository2-3.xml")), "remotePackage"):
        level = int(named(package, "channelRef")[0].get("ref").rpartition("-")[2])
        if level <= channel:
            found[package.get("path")] = package
    return found


def install(sdk, path, channel=0):
    package = offered(channel).get(path)
    if package is None:
        print(f"Warning: Failed to find package '{{path}}'", file=sys.stderr)
        return 1
    archive = next(one for one in named(package, "archive") if not named(one, "host-os"))
    content = fetched(named(archive, "url")[0].text)
    if hashlib.sha1(content).hexdigest() != named(archive, "checksum")[0].text:
        print("Warning: An error occurred while preparing SDK package: checksum mismatch", file=sys.stderr)
        return 1
    folder = sdk.joinpath(*path.split(";"))
    for entry in zipfile.ZipFile(io.BytesIO(content)).infolist():
        target = folder.joinpath(*Path(entry.filename).parts[1:])
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(zipfile.ZipFile(io.BytesIO(content)).read(entry))
        target.chmod(entry.external_attr >> 16 & 0o777)
    major = named(package, "major")[0].text
    (folder / "package.xml").write_text(LOCAL.format(path, major, path))
    return 0


def licence_agreed(sdk):
    if (sdk / "licenses" / "sim-license").exists():
        return True
    print("Accept? (y/N): ", end="", flush=True)
    return sys.stdin.readline().strip() == "y"


def sdkmanager(words):
    sdk = Path(next(w.partition("=")[2] for w in words if w.startswith("--sdk_root=")))
    channel = next((int(w.partition("=")[2]) for w in words if w.startswith("--channel=")), 0)
    if "--list" in words:
        print("Available Packages:\\n  Path | Version | Description\\n  ------- | ------- | -------")
        for path, package in sorted(offered(channel).items()):
            print(f"  {{path}} | {{named(package, 'major')[0].text}} | {{named(package, 'display-name')[0].text}}")
        return 0
    if not licence_agreed(sdk):
        print("Skipping following packages as the license is not accepted", file=sys.stderr)
        return 0
    return max(install(sdk, word, channel) for word in words if not word.startswith("--"))


def android(words):
    sdk = Path(next(w.partition("=")[2] for w in words if w.startswith("--sdk=")))
    assert words[1:3] == ["sdk", "install"], words
    code = install(sdk, words[3].replace("/", ";"))
    print("Failed to send metrics", file=sys.stderr)
    return code or 1  # its telemetry fails, the install is complete


def avdmanager(words):
    assert words[:2] == ["create", "avd"], words
    given = dict(zip(words[2::2], words[3::2]))
    print("Do you wish to create a custom hardware profile? [no] ", end="", flush=True)
    if sys.stdin.readline().strip() != "no":
        return 1
    home, name = Path(os.environ["ANDROID_AVD_HOME"]), given["-n"]
    folder = home / f"{{name}}.avd"
    folder.mkdir(parents=True)
    (home / f"{{name}}.ini").write_text(
        f"avd.ini.encoding=UTF-8\\npath={{folder}}\\npath.rel=avd/{{name}}.avd\\ntarget={{given['-k'].split(';')[1]}}\\n")
    (folder / "config.ini").write_text(
        f"AvdId={{name}}\\nabi.type=x86_64\\nhw.lcd.width = 720\\nhw.lcd.height = 1280\\nhw.lcd.density = 320\\n"
        f"hw.keyboard=yes\\nimage.sysdir.1={{given['-k'].replace(';', '/')}}/\\n")
    return 0


tool = Path(sys.argv[0]).name
sys.exit({{"sdkmanager": sdkmanager, "android": android, "avdmanager": avdmanager}}[tool](sys.argv[1:]))
"""
EMULATOR = f"""#!/bin/sh
PYTHONPATH={ROOT} exec {sys.executable} -m emulator_images.paper "$@"
""".encode()


def command_line_tools(sdk: Path, *names: str) -> None:
    """Put the tools into an SDK's folder."""
    folder = sdk / "cmdline-tools" / "latest" / "bin"
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text(_TOOL.format(python=sys.executable))
        (folder / name).chmod(stat.S_IRWXU)
