"""paper's gRPC controller before a client of Google's own library: who is let in, and what its calls do."""

import base64
import io
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256
from PIL import Image

from devices.engine import codec
from devices.engine.codec import Finger
from paper.lab import Lab, RunningPhone, free_pair, listening, phone, wait_for

SERVICE = "android.emulation.control.EmulatorController"
FORM = "lomi.paper.form"


def discovery(lab: Lab) -> dict[str, str]:
    """The one discovery file's lines."""
    (path,) = (lab.root / "run").rglob("pid_*.ini")
    return dict(line.split("=", 1) for line in path.read_text().splitlines())


@contextmanager
def controlled(
    lab: Lab, *flags: str, faults: str = "", wait: bool = True, **extra: str
) -> Iterator[tuple[RunningPhone, grpc.Channel, int]]:
    """A phone that serves gRPC, and a channel to it."""
    port = free_pair()[0]
    with (
        phone(lab, flags=("-grpc", str(port), *flags), faults=faults, wait=wait, **extra) as running,
        grpc.insecure_channel(f"127.0.0.1:{port}", options=(("grpc.enable_http_proxy", 0),)) as channel,
    ):
        yield running, channel, port


def call(channel: grpc.Channel, name: str, request: bytes = b"", bearer: str = "") -> bytes:
    """One call; its answer's bytes."""
    method = channel.unary_unary(f"/{SERVICE}/{name}", request_serializer=bytes, response_deserializer=bytes)
    metadata = (("authorization", f"Bearer {bearer}"),) if bearer else ()
    answer: bytes = method(request, metadata=metadata, timeout=10)
    return answer


def refused(channel: grpc.Channel, name: str, request: bytes = b"", bearer: str = "") -> grpc.StatusCode:
    """The status a call is refused with."""
    with pytest.raises(grpc.RpcError) as failure:
        call(channel, name, request, bearer)
    code: grpc.StatusCode = failure.value.code()
    return code


def bound_at(port: int) -> list[str]:
    """The addresses at which a port is listened on, as the kernel writes them; loopback ends with 0100007F."""
    lines = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()]
    return [words[1] for words in lines if words[1].endswith(f":{port:04X}") and words[3] == "0A"]


def test_the_announced_token_opens_it(lab: Lab) -> None:
    """The discovery file names port and token; without it nothing is answered, and it listens on loopback only."""
    with controlled(lab, "-grpc-use-token") as (running, channel, port):
        told = discovery(lab)
        assert (told["grpc.port"], told["port.serial"]) == (str(port), str(running.console_port))
        assert oct(next((lab.root / "run").rglob("pid_*.ini")).stat().st_mode)[-3:] == "600"
        token = told["grpc.token"]
        assert len(token) >= 32
        for bearer in ("", "wrong", token[:-1]):
            assert refused(channel, "getStatus", bearer=bearer) is grpc.StatusCode.UNAUTHENTICATED
        assert codec.read_booted(call(channel, "getStatus", bearer=token))
        assert refused(channel, "setGps", bearer=token) is grpc.StatusCode.UNIMPLEMENTED
        assert refused(channel, "sendTouch", b"\x0a\xff", bearer=token) is grpc.StatusCode.INVALID_ARGUMENT
        assert {address.rpartition("0100007F:")[1:] for address in bound_at(port)} == {("0100007F:", f"{port:04X}")}
    assert not listening(port)


def test_without_a_flag_a_token_is_wanted_too(lab: Lab) -> None:
    """`-grpc PORT` alone opens nothing to everybody."""
    with controlled(lab) as (_, channel, _port):
        assert refused(channel, "getStatus") is grpc.StatusCode.UNAUTHENTICATED


def encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def jwt(key: ec.EllipticCurvePrivateKey, **claims: object) -> str:
    """A token signed as the emulator's clients sign theirs."""
    head = encoded(json.dumps({"alg": "ES256", "typ": "JWT", "kid": "k1"}).encode())
    signed = f"{head}.{encoded(json.dumps(claims).encode())}"
    r, s = utils.decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(SHA256())))
    return f"{signed}.{encoded(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def test_a_signed_token_for_the_method_opens_it(lab: Lab) -> None:
    """With JWTs a client leaves its public key in the announced folder; audience, time and signature must fit."""
    with controlled(lab, "-grpc-use-jwt") as (_, channel, _port):
        told = discovery(lab)
        assert "grpc.token" not in told
        key, other = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        numbers = key.public_key().public_numbers()
        public = {"kty": "EC", "crv": "P-256", "kid": "k1", "x": encoded(numbers.x.to_bytes(32, "big"))}
        public["y"] = encoded(numbers.y.to_bytes(32, "big"))
        audience, soon = [f"/{SERVICE}/getStatus"], time.time() + 60
        good = jwt(key, aud=audience, exp=soon)
        assert refused(channel, "getStatus", bearer=good) is grpc.StatusCode.UNAUTHENTICATED
        (Path(told["grpc.jwks"]) / "client.jwk").write_text(json.dumps({"keys": [public]}))
        assert codec.read_booted(call(channel, "getStatus", bearer=good))
        for bad in (
            jwt(other, aud=audience, exp=soon),
            jwt(key, aud=audience, exp=time.time() - 1),
            jwt(key, aud=audience),
            good[:-2],
            f"{good}.x",
        ):
            assert refused(channel, "getStatus", bearer=bad) is grpc.StatusCode.UNAUTHENTICATED
        assert refused(channel, "getClipboard", bearer=good) is grpc.StatusCode.UNAUTHENTICATED
    assert not Path(told["grpc.jwks"]).exists()


def test_calls_reach_the_phone(lab: Lab) -> None:
    """Pictures in each form, touches, keys, text and the clipboard are those of the screen that adb sees."""
    with controlled(lab, "-grpc-use-token") as (running, channel, _port):
        token = discovery(lab)["grpc.token"]

        def ask(name: str, request: bytes = b"") -> bytes:
            return call(channel, name, request, token)

        running.shell(f"am start -n {FORM}/.FormActivity")
        picture = codec.read_image(ask("getScreenshot"))
        assert picture.data == running.adb("exec-out", "screencap", "-p").raw
        small = codec.read_image(ask("getScreenshot", codec.image_format(codec.RGB888, width=180, height=9999)))
        assert (small.width, small.height, len(small.data)) == (180, 320, 180 * 320 * 3)
        with Image.open(io.BytesIO(picture.data)) as full:
            top = full.convert("RGB").getpixel((2, 2))
        assert tuple(small.data[-180 * 3 : -180 * 3 + 3]) == top  # bottom up: the last row is the top
        dump = running.shell("uiautomator dump /dev/tty")
        left, top_edge, right, bottom = bounds_of(dump, "name")
        x, y = (left + right) // 2, (top_edge + bottom) // 2
        ask("sendTouch", codec.touch_event((Finger(0, x, y, 1),)))
        ask("sendTouch", codec.touch_event((Finger(0, x, y, 0),)))
        ask("sendKey", codec.key_event("keypress", text="Ada é"))
        ask("sendKey", codec.key_event("keypress", key="Backspace"))
        assert 'text="Ada"' in running.shell("uiautomator dump /dev/tty")
        ask("sendKey", codec.key_event("keydown", key="Control"))
        ask("sendKey", codec.key_event("keypress", key="a"))
        ask("sendKey", codec.key_event("keypress", key="c"))
        ask("sendKey", codec.key_event("keyup", key="Control"))
        assert codec.read_clip(ask("getClipboard")) == "Ada"
        ask("setClipboard", codec.clip("שלום"))
        assert codec.read_clip(ask("getClipboard")) == "שלום"
        ask("sendKey", codec.key_event("keypress", key="GoHome"))
        wait_for(lambda: "launcher" in running.shell("dumpsys window | grep mCurrentFocus"))


def bounds_of(dump: str, item: str) -> tuple[int, int, int, int]:
    """The bounds of an item by its id."""
    words = dump.split(f"{FORM}:id/{item}", 1)[1].split('bounds="', 1)[1].split('"', 1)[0]
    left, top, right, bottom = (int(word) for word in words.strip("[]").replace("][", ",").split(","))
    return left, top, right, bottom


def test_frames_stream_on_change(lab: Lab) -> None:
    """A stream has one frame at once and another after a change, numbered."""
    with controlled(lab, "-grpc-use-token") as (running, channel, _port):
        method = channel.unary_stream(f"/{SERVICE}/streamScreenshot", request_serializer=bytes)
        metadata = (("authorization", f"Bearer {discovery(lab)['grpc.token']}"),)
        frames = method(codec.image_format(codec.PNG), metadata=metadata, timeout=20)
        first = codec.read_image(next(frames))
        running.shell(f"am start -n {FORM}/.FormActivity")
        second = codec.read_image(next(frames))
        assert (first.sequence, second.sequence) == (0, 1)
        assert first.data != second.data
        frames.cancel()


def test_what_keeps_it_from_serving_is_said(lab: Lab) -> None:
    """A taken port leaves the phone without gRPC, said on standard error and announced to nobody."""
    with (
        controlled(lab, "-grpc-use-token") as (_, _channel, port),
        phone(lab, "other", flags=("-grpc", str(port), "-grpc-use-token")) as other,
    ):
        assert "Failed to start gRPC service" in other.stderr()
        told = (lab.root / "run" / "avd" / "running" / f"pid_{other.process.pid}.ini").read_text()
        assert not [line for line in told.splitlines() if line.startswith("grpc.")]
