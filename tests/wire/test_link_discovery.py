"""The discovery file: nothing about it is believed that was not checked."""

import json
import os
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from lomi.disk.private import write_private
from lomi.disk.refusal import DiskRefusedError
from lomi.link.discovery import Descriptor, read
from lomi.link.errors import BrokerAbsentError, DiscoveryRefusedError
from lomi.link.registration import control_directory, public_hex, publish, registration_key, withdraw

FOUND = Descriptor("instance-1", "/run/lomi/control.sock", "ab" * 32)


@pytest.fixture
def control(tmp_path: Path) -> Path:
    """The control directory of a fresh state directory."""
    return control_directory(tmp_path / "home")


@pytest.fixture
def key(control: Path) -> Ed25519PrivateKey:
    """Its registration key."""
    return registration_key(control)


@pytest.fixture
def file(control: Path, key: Ed25519PrivateKey) -> Path:
    """A published discovery file."""
    publish(control, key, FOUND)
    return control / "discovery.json"


def refusal(path: Path, key: Ed25519PrivateKey | str) -> str:
    """Read what must be refused and return the reason."""
    with pytest.raises(DiscoveryRefusedError) as caught:
        read(path, key if isinstance(key, str) else public_hex(key))
    return caught.value.reason


def test_what_is_published_is_found(file: Path, key: Ed25519PrivateKey) -> None:
    """The reader gets the descriptor; directory, key and file have the modes and the form of the contract."""
    assert read(file, public_hex(key)) == FOUND
    assert [
        stat.S_IMODE(path.stat().st_mode) for path in (file.parent, file, file.parent / "registration-key.pk8")
    ] == [
        0o700,
        0o600,
        0o600,
    ]
    outer = json.loads(file.read_bytes())
    assert outer.keys() == {"version", "payload", "signature"}
    assert outer["version"] == 1
    assert json.loads(outer["payload"]) == {
        "instanceId": FOUND.instance_id,
        "endpoint": FOUND.endpoint,
        "brokerSha256": FOUND.broker_sha256,
        "ipcVersion": 1,
    }
    key.public_key().verify(bytes.fromhex(outer["signature"]), b"lomi-mcp-discovery-v1\0" + outer["payload"].encode())


def test_the_key_outlives_the_instance(control: Path, key: Ed25519PrivateKey) -> None:
    """A second start finds the same key, so that clients stay registered."""
    assert public_hex(registration_key(control)) == public_hex(key)


@pytest.mark.parametrize("damage", [b"", b"garbage", b"0" * 2000, "x25519"])
def test_a_damaged_key_is_refused_and_kept(control: Path, key: Ed25519PrivateKey, damage: bytes | str) -> None:
    """A key file that is not ours is neither used nor overwritten."""
    if isinstance(damage, str):
        other = X25519PrivateKey.generate()
        damage = other.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    write_private(control / "registration-key.pk8", damage)
    with pytest.raises((DiscoveryRefusedError, DiskRefusedError)):
        registration_key(control)
    assert (control / "registration-key.pk8").read_bytes() == damage


def test_a_key_that_others_may_read_is_refused(control: Path, key: Ed25519PrivateKey) -> None:
    """The private key has mode 0600 or is not used."""
    (control / "registration-key.pk8").chmod(0o644)
    with pytest.raises(DiskRefusedError):
        registration_key(control)


def test_a_bad_signature_an_edited_payload_or_another_key_is_refused(file: Path, key: Ed25519PrivateKey) -> None:
    """Only the registered key's signature over exactly this payload counts."""
    outer = json.loads(file.read_bytes())
    write_private(file, json.dumps(outer | {"signature": "00" * 64}).encode())
    assert refusal(file, key) == "signature_invalid"
    write_private(file, json.dumps(outer | {"signature": "not hex"}).encode())
    assert refusal(file, key) == "signature_invalid"
    write_private(file, json.dumps(outer | {"payload": outer["payload"].replace("instance-1", "instance-2")}).encode())
    assert refusal(file, key) == "signature_invalid"
    write_private(file, json.dumps(outer).encode())
    assert refusal(file, Ed25519PrivateKey.generate()) == "signature_invalid"
    assert refusal(file, "not hex") == "key_invalid"
    assert refusal(file, "ab" * 31) == "key_invalid"
    assert read(file, public_hex(key)) == FOUND


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"version": True},
        {"extra": 1},
        {"payload": {}},
        {"inner": {"ipcVersion": 2}},
        {"inner": {"ipcVersion": "1"}},
        {"inner": {"endpoint": "relative.sock"}},
        {"inner": {"instanceId": "Upper"}},
        {"inner": {"instanceId": "a.b"}},
        {"inner": {"brokerSha256": "AB" * 32}},
        {"inner": {"brokerSha256": "ab" * 31}},
        {"inner": {"extra": 1}},
    ],
)
def test_another_shape_is_refused_even_when_signed(
    file: Path, key: Ed25519PrivateKey, change: dict[str, object]
) -> None:
    """A correct signature does not excuse unknown fields, other versions or values out of form."""
    outer = json.loads(file.read_bytes())
    inner = change.pop("inner", None)
    if isinstance(inner, dict):
        outer["payload"] = json.dumps(json.loads(outer["payload"]) | inner)
        outer["signature"] = key.sign(b"lomi-mcp-discovery-v1\0" + outer["payload"].encode()).hex()
    write_private(file, json.dumps(outer | change).encode())
    assert refusal(file, key) == "discovery_malformed"


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b"{", b"[" * 10_000, b"\xff\xfe", b"1e999"])
def test_what_is_no_such_document_is_refused(file: Path, key: Ed25519PrivateKey, content: bytes) -> None:
    """Truncated, nested or foreign content is one clear refusal."""
    write_private(file, content)
    assert refusal(file, key) == "discovery_malformed"


def test_each_bit_flip_is_refused(file: Path, key: Ed25519PrivateKey) -> None:
    """No single flipped bit in the file gives another descriptor."""
    content = file.read_bytes()
    for position in range(0, len(content), 7):
        flipped = bytearray(content)
        flipped[position] ^= 1 << (position % 8)
        write_private(file, bytes(flipped))
        try:
            assert read(file, public_hex(key)) == FOUND, "harmless, such as the case of a hex digit"
        except DiscoveryRefusedError:
            continue


def test_an_untrusted_file_is_refused(file: Path, key: Ed25519PrivateKey, tmp_path: Path) -> None:
    """World-readable, symlinked file or directory, hard-linked, oversize, relative path, FIFO: each is refused."""
    content = file.read_bytes()
    for mode in (0o644, 0o640, 0o400):
        file.chmod(mode)
        assert refusal(file, key) == "mode_not_private"
    file.chmod(0o600)
    (tmp_path / "link.json").symlink_to(file)
    assert refusal(tmp_path / "link.json", key) == "symlink"
    (tmp_path / "way").symlink_to(file.parent)
    assert refusal(tmp_path / "way" / "discovery.json", key) == "symlink"
    assert refusal(Path(os.path.relpath(file)), key) == "path_not_absolute"
    assert refusal(file.parent / ".." / file.parent.name / file.name, key) == "name_invalid"
    os.link(file, tmp_path / "second.json")
    assert refusal(file, key) == "hard_link"
    (tmp_path / "second.json").unlink()
    write_private(file, content + b" " * (16 << 10))
    assert refusal(file, key) == "too_large"
    file.unlink()
    os.mkfifo(file, 0o600)
    assert refusal(file, key) == "not_a_regular_file"


def test_no_file_means_no_broker(file: Path, key: Ed25519PrivateKey) -> None:
    """Absence is told apart from what can't be trusted."""
    file.unlink()
    with pytest.raises(BrokerAbsentError) as caught:
        read(file, public_hex(key))
    assert caught.value.reason == "discovery_absent"


def test_an_earlier_instance_does_not_remove_a_later_ones_file(control: Path, key: Ed25519PrivateKey) -> None:
    """Each instance withdraws its own file only."""
    first = publish(control, key, FOUND)
    later = FOUND._replace(instance_id="instance-2")
    second = publish(control, key, later)
    assert not withdraw(control, first)
    assert read(control / "discovery.json", public_hex(key)) == later
    assert withdraw(control, second)
    assert not (control / "discovery.json").exists()
