"""The emulator console: a line protocol on the loopback, opened with a token."""

import asyncio
import hmac
import os
from contextlib import suppress
from pathlib import Path

from emulator_images.paper.phone import Phone
from emulator_images.paper.screen.keys import code_of, press_keys
from emulator_images.paper.screen.state import Notification
from emulator_images.paper.screen.touch import gesture

_HELP = """Android console command help:

    help|h|?         Prints a list of commands
    help-verbose     Prints a list of commands with descriptions
    ping             Checks if the emulator is alive
    event            Simulates hardware events
    geo              Geo-location commands
    gsm              GSM related commands
    kill             Terminates the emulator instance
    network          Manages network settings
    power            Power related commands
    quit|exit        Quits control session
    redir            Manages port redirections
    sms              SMS related commands
    avd              Controls virtual device execution
    sensor           Manages emulator sensors
    rotate           Rotates the screen clockwise by 90 degrees
    screenrecord     Records the emulator's display
"""
_QUIET = frozenset({"geo", "gsm", "network", "power", "sensor", "redir", "physics", "finger", "debug", "rotate"})


def make_token(path: Path) -> str:
    """The console's token; made if missing, since adb reads the file only after it has connected."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as target:
            target.write(os.urandom(8).hex())
    return path.read_text("ascii").strip()


class Console:
    """Serves console sessions of one phone."""

    def __init__(self, phone: Phone, token_path: Path, token: str) -> None:
        self._phone = phone
        self._path = token_path
        self._token = token

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One session."""
        try:
            await self._session(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, ValueError):
            pass
        finally:
            writer.close()

    async def _session(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        authorised = not self._token
        writer.write((_greeting(self._path) if not authorised else _welcome()).encode())
        while line := await reader.readline():
            words = line.decode("utf-8", "replace").split()
            if not words:
                continue
            if words[0] in {"quit", "exit"}:
                return
            if words[0] == "auth":
                if len(words) == 2 and hmac.compare_digest(words[1].encode(), self._token.encode()):
                    authorised = True
                    answer = _welcome()
                else:
                    answer = "KO: authentication token does not match ~/.emulator_console_auth_token\r\n"
            elif words[0] in {"help", "h", "?"}:
                answer = _HELP.replace("\n", "\r\n") + "OK\r\n"
            elif words[0] == "ping":
                answer = "I am alive!\r\nOK\r\n"
            elif not authorised:
                answer = "KO: unknown command, try 'help'\r\n"
            elif words[0] == "kill":
                if await self._kill(writer):
                    return
                continue
            else:
                answer = self._answer(words)
            writer.write(answer.encode())
            await writer.drain()

    async def _kill(self, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"OK: killing emulator, bye bye\r\n")
        with suppress(ConnectionError):
            await writer.drain()
        if self._phone.faults.strikes("ignored_kill") is not None:
            self._phone.record("kill", ignored=True)
            return False
        self._phone.record("kill", ignored=False)
        writer.close()
        self._phone.stop_asked.set()
        return True

    def _answer(self, words: list[str]) -> str:
        phone = self._phone
        if words[0] == "avd":
            return self._avd(words[1:])
        if words[0] == "rotate":
            rotation = (phone.stage.rotation + 3) % 4
            phone.settings[("system", "user_rotation")] = str(rotation)
            phone.stage.rotate(rotation)
            return "OK\r\n"
        if words[0] == "event":
            return self._event(words[1:])
        if words[:2] == ["sms", "send"] and len(words) > 3:
            phone.stage.notifications.insert(0, Notification("com.android.shell", words[2], " ".join(words[3:])))
            return "OK\r\n"
        if words[:2] == ["power", "capacity"] and len(words) == 3 and words[2].isdecimal():
            phone.battery = int(words[2])
            return "OK\r\n"
        if words[0] in _QUIET:
            return "OK\r\n"
        return "KO: unknown command, try 'help'\r\n"

    def _avd(self, words: list[str]) -> str:
        phone = self._phone
        if words[:1] == ["name"]:
            return f"{phone.avd.name}\r\nOK\r\n" if phone.name_known else "OK\r\n"
        if words[:1] == ["status"]:
            return "virtual device is running\r\nOK\r\n"
        if words[:1] == ["path"]:
            return f"{phone.avd.directory}\r\nOK\r\n"
        if words[:1] == ["heartbeat"]:
            return "heartbeat: 0\r\nOK\r\n"
        if words[:1] in (["start"], ["stop"], ["pause"], ["resume"]):
            return "OK\r\n"
        if words[:1] == ["snapshot"]:
            return "KO: snapshots are not simulated\r\n"
        return "KO: bad sub-command\r\n"

    def _event(self, words: list[str]) -> str:
        phone = self._phone
        if words[:1] == ["text"] and len(words) > 1:
            editor = phone.stage.editor()
            text = " ".join(words[1:])
            if editor is not None:
                editor.insert(text)
            phone.record("text", text=text, by="console")
            return "OK\r\n"
        if words[:1] == ["mouse"] and len(words) >= 5:
            x, y, pressed = int(words[1]), int(words[2]), int(words[4])
            if pressed:
                phone.touch_path.append((x, y))
            elif phone.touch_path:
                gesture(phone.stage, (*phone.touch_path, (x, y)), 50)
                phone.record("input", kind="mouse", x=x, y=y)
                phone.touch_path.clear()
            return "OK\r\n"
        if words[:1] == ["keydown"] and len(words) == 2 and (code := code_of(words[1])) is not None:
            press_keys(phone.stage, (code,))
            phone.record("key", codes=[str(code)], by="console")
            return "OK\r\n"
        if words[:1] in (["send"], ["keyup"], ["types"], ["codes"]):
            return "OK\r\n"
        return "KO: bad sub-command\r\n"


def _greeting(path: Path) -> str:
    return (
        "Android Console: Authentication required\r\n"
        "Android Console: type 'auth <auth_token>' to authenticate\r\n"
        f"Android Console: you can find your <auth_token> in \r\n'{path}'\r\nOK\r\n"
    )


def _welcome() -> str:
    return "Android Console: type 'help' for a list of commands\r\nOK\r\n"
