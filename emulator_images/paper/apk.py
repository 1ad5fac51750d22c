"""Real APK files: what the package manager reads from one before it installs it."""

import hashlib
import io
import struct
import zipfile
from dataclasses import dataclass
from typing import IO

from emulator_images.paper.axml import BadXmlError, Element, elements

_BLOCK_MAGIC = b"APK Sig Block 42"
_SCHEMES = {0x7109871A: 2, 0xF05368C0: 3, 0x1B93AD61: 3}
_LARGEST_MANIFEST = 1 << 20


class BadApkError(Exception):
    """Raised when a file is no APK; `no_zip` when it is not even a zip file."""

    def __init__(self, text: str, *, no_zip: bool = False) -> None:
        super().__init__(text)
        self.no_zip = no_zip


@dataclass(frozen=True, slots=True)
class Apk:
    """What matters of an APK. `certificate` is the SHA-256 of the first signer's; `scheme` is 0 if unsigned."""

    package: str
    version_code: int
    version_name: str
    min_sdk: int
    target_sdk: int
    abis: frozenset[str]
    launcher: str | None
    activities: tuple[str, ...]
    permissions: tuple[str, ...]
    debuggable: bool
    test_only: bool
    label: str
    scheme: int
    certificate: str


def read_apk(source: bytes | IO[bytes]) -> Apk:
    """Read an APK's manifest, ABIs and signer.

    Raises:
        BadApkError: the file is no APK.
    """
    target = io.BytesIO(source) if isinstance(source, bytes) else source
    try:
        with zipfile.ZipFile(target) as archive:
            names = archive.namelist()
            if archive.getinfo("AndroidManifest.xml").file_size > _LARGEST_MANIFEST:
                raise BadApkError("manifest is too large")
            manifest = elements(archive.read("AndroidManifest.xml"))
            legacy = _legacy_certificate(archive, names)
    except zipfile.BadZipFile as error:
        raise BadApkError("Failed to parse base.apk: Failed to load asset path", no_zip=True) from error
    except KeyError as error:
        raise BadApkError("Failed to parse base.apk: AndroidManifest.xml missing") from error
    except BadXmlError as error:
        raise BadApkError(f"Failed to parse base.apk: Corrupt XML binary file: {error}") from error
    scheme, certificate = _signing_block(target)
    if not scheme and legacy:
        scheme, certificate = 1, legacy
    abis = frozenset(name.split("/")[1] for name in names if name.startswith("lib/") and name.endswith(".so"))
    return _apk(manifest, abis, scheme, certificate)


def _apk(manifest: list[Element], abis: frozenset[str], scheme: int, certificate: str) -> Apk:
    root = next((element for element in manifest if element.name == "manifest"), None)
    if root is None or not root.text("package"):
        raise BadApkError("Failed to parse base.apk: <manifest> has no package")
    package = root.text("package")
    sdk = next((element for element in manifest if element.name == "uses-sdk"), Element("uses-sdk", {}))
    application = next((element for element in manifest if element.name == "application"), Element("application", {}))
    activities: list[str] = []
    launcher: str | None = None
    actions: set[str] = set()
    for element in manifest:
        if element.name in {"activity", "activity-alias"}:
            activities.append(_class_name(package, element.text("name")))
        elif element.name == "intent-filter":
            actions = set()
        elif element.name == "action":
            actions.add(element.text("name"))
        elif (
            launcher is None
            and activities
            and element.name == "category"
            and element.text("name") == "android.intent.category.LAUNCHER"
            and "android.intent.action.MAIN" in actions
        ):
            launcher = activities[-1]
    permissions = tuple(e.text("name") for e in manifest if e.name == "uses-permission" and e.text("name"))
    return Apk(
        package=package,
        version_code=root.number("versionCodeMajor") << 32 | root.number("versionCode"),
        version_name=root.text("versionName"),
        min_sdk=sdk.number("minSdkVersion", 1),
        target_sdk=sdk.number("targetSdkVersion", 0),
        abis=abis,
        launcher=launcher,
        activities=tuple(activities),
        permissions=permissions,
        debuggable=bool(application.number("debuggable")),
        test_only=bool(application.number("testOnly")),
        label=application.text("label") or package.rsplit(".", 1)[-1],
        scheme=scheme,
        certificate=certificate,
    )


def _class_name(package: str, name: str) -> str:
    if name.startswith("."):
        return package + name
    return name if "." in name else f"{package}.{name}"


def _signing_block(target: IO[bytes]) -> tuple[int, str]:
    """Scheme and certificate digest of the APK Signing Block, which lies before the zip's central directory."""
    target.seek(0, io.SEEK_END)
    size = target.tell()
    target.seek(max(0, size - 65557))
    tail = target.read()
    end = tail.rfind(b"PK\x05\x06")
    if end < 0:
        return 0, ""
    directory = struct.unpack_from("<I", tail, end + 16)[0]
    if directory < 32:
        return 0, ""
    target.seek(directory - 24)
    length, magic = struct.unpack("<Q16s", target.read(24))
    if magic != _BLOCK_MAGIC or length > directory:
        return 0, ""
    target.seek(directory - length)
    block = target.read(length - 24)
    best = (0, "")
    at = 0
    while at + 12 <= len(block):
        pair, kind = struct.unpack_from("<QI", block, at)
        if kind in _SCHEMES and _SCHEMES[kind] > best[0]:
            best = (_SCHEMES[kind], _first_certificate(block[at + 12 : at + 8 + pair]))
        at += 8 + pair
    return best


def _prefixed(payload: bytes, at: int = 0) -> bytes:
    length = struct.unpack_from("<I", payload, at)[0]
    return payload[at + 4 : at + 4 + length]


def _first_certificate(payload: bytes) -> str:
    signed = _prefixed(_prefixed(_prefixed(payload)))
    digests = struct.unpack_from("<I", signed)[0]
    return hashlib.sha256(_prefixed(_prefixed(signed, 4 + digests))).hexdigest()


def _legacy_certificate(archive: zipfile.ZipFile, names: list[str]) -> str:
    for name in names:
        if name.startswith("META-INF/") and name.endswith((".RSA", ".DSA", ".EC")):
            return hashlib.sha256(_pkcs7_certificate(archive.read(name))).hexdigest()
    return ""


def _pkcs7_certificate(payload: bytes) -> bytes:
    """The first certificate of a PKCS#7 SignedData; the whole payload when it cannot be found."""
    try:
        content = _children(_children(_children(payload)[0][1])[1][1])[0][1]
        for tag, _, whole in _children_of(content):
            if tag == 0xA0:
                start = len(whole) - len(_value(whole))
                return _first_whole(whole[start:])
    except (IndexError, ValueError):
        pass
    return payload


def _value(element: bytes) -> bytes:
    length, at = element[1], 2
    if length & 0x80:
        at += length & 0x7F
    return element[at:]


def _first_whole(payload: bytes) -> bytes:
    return _children_of(payload)[0][2]


def _children(payload: bytes) -> list[tuple[int, bytes]]:
    return [(tag, value) for tag, value, _ in _children_of(payload)]


def _children_of(payload: bytes) -> list[tuple[int, bytes, bytes]]:
    """Tag, value and whole bytes of the DER elements that lie one after the other."""
    found: list[tuple[int, bytes, bytes]] = []
    at = 0
    while at < len(payload):
        length, start = payload[at + 1], at + 2
        if length & 0x80:
            count = length & 0x7F
            length, start = int.from_bytes(payload[start : start + count], "big"), start + count
        found.append((payload[at], payload[start : start + length], payload[at : start + length]))
        at = start + length
    return found
