"""Makes small real APKs: binary manifest, zip, and a v2 signing block around a made-up certificate."""

import io
import struct
import zipfile

_MANIFEST_NAMES = {"versionCode": 0x0101021B, "versionName": 0x0101021C, "minSdkVersion": 0x0101020C,
                   "targetSdkVersion": 0x01010270, "name": 0x01010003, "debuggable": 0x0101000F}  # fmt: skip
_NONE = 0xFFFFFFFF


def make_apk(
    package: str,
    *,
    code: int = 1,
    name: str = "1.0",
    min_sdk: int = 26,
    target_sdk: int = 34,
    certificate: bytes = b"someone",
    abi: str = "",
    padding: int = 0,
) -> bytes:
    """The bytes of an APK with a launcher activity `.Main`."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("AndroidManifest.xml", _manifest(package, code, name, min_sdk, target_sdk))
        archive.writestr("classes.dex", b"dex\n035\0")
        if abi:
            archive.writestr(f"lib/{abi}/libx.so", b"\x7fELF")
        if padding:
            archive.writestr(zipfile.ZipInfo("assets/padding"), b"\0" * padding)
    return _signed(out.getvalue(), certificate)


class _Pool:
    def __init__(self) -> None:
        self.strings = list(_MANIFEST_NAMES)

    def index(self, text: str) -> int:
        if text not in self.strings:
            self.strings.append(text)
        return self.strings.index(text)

    def chunk(self) -> bytes:
        offsets, data = [], b""
        for text in self.strings:
            offsets.append(len(data))
            raw = text.encode("utf-16-le")
            data += struct.pack("<H", len(text)) + raw + b"\0\0"
        data += b"\0" * (-len(data) % 4)
        start = 28 + 4 * len(offsets)
        head = struct.pack("<HHIIIIII", 1, 28, start + len(data), len(offsets), 0, 0, start, 0)
        return head + struct.pack(f"<{len(offsets)}I", *offsets) + data


def _manifest(package: str, code: int, name: str, min_sdk: int, target_sdk: int) -> bytes:
    pool = _Pool()
    space = pool.index("http://schemas.android.com/apk/res/android")

    def start(tag: str, *attributes: tuple[str, str | int]) -> bytes:
        body = b""
        for key, value in attributes:
            where = _NONE if key == "package" else space
            if isinstance(value, str):
                text = pool.index(value)
                body += struct.pack("<IIIHBBI", where, pool.index(key), text, 8, 0, 3, text)
            else:
                body += struct.pack("<IIIHBBI", where, pool.index(key), _NONE, 8, 0, 16, value)
        inner = struct.pack("<IIHHHHHH", _NONE, pool.index(tag), 20, 20, len(attributes), 0, 0, 0) + body
        return struct.pack("<HHIII", 0x102, 16, 16 + len(inner), 1, _NONE) + inner

    def end(tag: str) -> bytes:
        return struct.pack("<HHIIIII", 0x103, 16, 24, 1, _NONE, _NONE, pool.index(tag))

    body = start("manifest", ("versionCode", code), ("versionName", name), ("package", package))
    body += start("uses-sdk", ("minSdkVersion", min_sdk), ("targetSdkVersion", target_sdk)) + end("uses-sdk")
    body += start("application") + start("activity", ("name", f"{package}.Main")) + start("intent-filter")
    body += start("action", ("name", "android.intent.action.MAIN")) + end("action")
    body += start("category", ("name", "android.intent.category.LAUNCHER")) + end("category")
    body += end("intent-filter") + end("activity") + end("application") + end("manifest")
    ids = struct.pack("<HHI", 0x180, 8, 8 + 4 * len(_MANIFEST_NAMES))
    ids += struct.pack(f"<{len(_MANIFEST_NAMES)}I", *_MANIFEST_NAMES.values())
    inner = pool.chunk() + ids + body
    return struct.pack("<HHI", 3, 8, 8 + len(inner)) + inner


def _prefixed(payload: bytes) -> bytes:
    return struct.pack("<I", len(payload)) + payload


def _signed(apk: bytes, certificate: bytes) -> bytes:
    end = apk.rfind(b"PK\x05\x06")
    directory = struct.unpack_from("<I", apk, end + 16)[0]
    data = _prefixed(b"") + _prefixed(_prefixed(certificate)) + _prefixed(b"")
    signer = _prefixed(_prefixed(data) + _prefixed(b"") + _prefixed(b""))
    value = struct.pack("<I", 0x7109871A) + _prefixed(signer)
    pairs = struct.pack("<Q", len(value)) + value
    size = len(pairs) + 24
    block = struct.pack("<Q", size) + pairs + struct.pack("<Q", size) + b"APK Sig Block 42"
    tail = apk[end : end + 16] + struct.pack("<I", directory + len(block)) + apk[end + 20 :]
    return apk[:directory] + block + apk[directory:end] + tail
