"""A phone: touch what it shows, type, install and launch apps."""

from pathlib import Path
from typing import Literal

from lomi.client.acts import Act
from lomi.client.aio.looking import TIMEOUT_S, again
from lomi.client.aio.packages import imported_apk
from lomi.client.aio.phone_life import LIFE_S
from lomi.client.aio.phone_screen import PhoneScreen
from lomi.client.aio.session import WAIT_MS
from lomi.client.errors import ControlRevokedError
from lomi.client.names import PhoneTarget, Point
from lomi.contract import android
from lomi.contract.android import AndroidEvent, AndroidInput, AndroidInstall, AndroidLaunch
from lomi.contract.codes import ErrorCode
from lomi.contract.model import Result


class Phone(PhoneScreen):
    """One phone of the grant with a panel of its own, made by `Lab.phone`; its input is sent in order."""

    async def tap(
        self, target: PhoneTarget, *, count: int = 1, hold_s: float = 0.0, timeout_s: float = TIMEOUT_S
    ) -> Act[AndroidInput]:
        """Tap what has that name, as soon as it is there: exactly one thing, or an error that lists what there is.

        Args:
            target: a text, role, id or ref, or a point of the display.
            count: how often, 1 to 3.
            hold_s: how long each touch lasts, at most 10.
            timeout_s: how long the name may take to appear.

        Raises:
            NameAbsentError: nothing has that name.
            NameAmbiguousError: several things have it.
            ToolError: refused, or not confirmed.
        """

        async def once() -> Act[AndroidInput]:
            at = await self._place(target)
            return await self._input(android.Tap(at=at, count=count, hold_ms=round(hold_s * 1000)))

        return await again(once, timeout_s)

    async def swipe(
        self, start: PhoneTarget, end: PhoneTarget, *, duration_s: float = 0.3, timeout_s: float = TIMEOUT_S
    ) -> Act[AndroidInput]:
        """Move one finger from one place to another."""

        async def once() -> Act[AndroidInput]:
            first = await self._place(start)
            last = await self._place(end)
            return await self._input(android.Swipe(from_=first, to=last, duration_ms=round(duration_s * 1000)))

        return await again(once, timeout_s)

    async def type(
        self, text: str, into: PhoneTarget | None = None, *, unread_ok: bool = False, timeout_s: float = TIMEOUT_S
    ) -> Act[AndroidInput]:
        """Commit text to the focused field, any Unicode; with `into` that field is tapped first.

        Args:
            text: what is typed.
            into: the field.
            unread_ok: hand back an act that nothing can confirm, as of a password, instead of raising.
            timeout_s: how long the field may take to appear.

        Raises:
            OutcomeUnknownError: the field holds something else (`text_differs`), or nothing can be read back
                (`text_not_confirmed`), as of a password.
        """
        if into is not None:
            await self.tap(into, timeout_s=timeout_s)
        return await self._input(android.CommitText(text=text), unread_ok=unread_ok)

    async def press(self, key: str, count: int = 1) -> Act[AndroidInput]:
        """Press and lift one key: an ASCII character, or `Enter`, `Tab`, `Backspace`, `ArrowLeft` ..."""
        return await self._input(android.Press(key=key, count=count))

    async def key(self, key: str, *, down: bool) -> Act[AndroidInput]:
        """Hold one key down, or lift it."""
        return await self._input(android.HoldKey(key=key, down=down))

    async def go(self, button: Literal["back", "home", "overview", "power"]) -> Act[AndroidInput]:
        """Press a system button."""
        return await self._input(android.Navigate(key=button))

    async def rotate(self, quarter_turns: int) -> Act[AndroidInput]:
        """Turn it to this many quarter turns, 0 to 3."""
        return await self._input(android.Rotate(quarter_turns=quarter_turns))

    async def launch(self, package: str, activity: str | None = None) -> Act[AndroidLaunch]:
        """Launch an app of the grant; proves that the intent was delivered, no more."""
        generation = self.generation
        return await self._session.act(
            "lomi_android_launch",
            lambda: android.AndroidLaunchInput(
                **self._session.revised(),
                panel_id=self.panel_id,
                device_id=self.device_id,
                generation=generation,
                package_name=package,
                activity=activity,
            ),
            AndroidLaunch,
            generation=generation,
            keep=self._keep,
        )

    async def install(self, apk: str | Path) -> Act[AndroidInstall]:
        """Install an APK over what is there, keeping its data. Lomi uninstalls nothing: wipe the phone for that.

        A file outside of the project is copied into it for as long as the broker takes to import it.

        Raises:
            OSError: the file can't be read.
            ScopeDeniedError: the policy does not decide it.
            ArtifactInvalidError: no APK, or the installer refused it.
        """
        artifact = await imported_apk(self._session, Path(apk), self._keep)
        generation = self.generation
        return await self._session.act(
            "lomi_android_install_apk",
            lambda: android.AndroidInstallInput(
                **self._session.keyed(),
                panel_id=self.panel_id,
                device_id=self.device_id,
                generation=generation,
                artifact_id=artifact.artifact_id,
                sha256=artifact.sha256,
            ),
            AndroidInstall,
            generation=generation,
            timeout_s=LIFE_S,
            keep=self._keep,
        )

    async def _place(self, target: PhoneTarget) -> android.Place:
        if isinstance(target, Point):
            return android.Place(space="hardware_display", x=target.x, y=target.y)
        ref = await self._resolve(target)
        return android.Place(snapshot_id=ref.snapshot_id, ref=ref.ref)

    async def _input(self, event: AndroidEvent, *, unread_ok: bool = False) -> Act[AndroidInput]:
        """Send one event under the next sequence; a refusal by envelope leaves that number free."""
        async with self._one_input:
            generation, lease_id = self.generation, self._lease_id
            if lease_id is None:
                raise ControlRevokedError(
                    ErrorCode.CONTROL_REVOKED, f"Phone {self.name} is not leased.", reason="lease_lost"
                )
            sequence = self._sequence + 1

            def keep(act: Act[Result]) -> None:
                self._sequence = sequence
                self._keep(act)

            return await self._session.act(
                "lomi_android_input",
                lambda: android.AndroidInputInput(
                    workspace_id=self._session.workspace_id,
                    panel_id=self.panel_id,
                    device_id=self.device_id,
                    generation=generation,
                    lease_id=lease_id,
                    input_sequence=str(sequence),
                    event=event,
                    retry_epoch=self._session.epoch,
                    wait_ms=WAIT_MS,
                ),
                AndroidInput,
                generation=generation,
                unread_ok=unread_ok,
                keep=keep,
            )
