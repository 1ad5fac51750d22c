"""Install an imported APK: a person decides on exactly these bytes for exactly this boot of the phone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from devices.apk import ApkIdentity, read_apk
from devices.faults import DeviceFault
from devices.packages import Installed
from devices.port.faults import acting, reading
from devices.port.lives import Lives
from lomi.contract.android import AndroidInstall, AndroidInstallInput
from lomi.contract.codes import EffectState, ErrorCode, OperationState
from lomi.core.port import Call, Ledger, Outcome, Permit, Plan, StoredArtifact
from lomi.core.refusal import Refusal


class AndroidInstalls:
    """The one handler that needs a decision."""

    def __init__(self, lives: Lives, ledger: Ledger) -> None:
        self._lives = lives
        self._ledger = ledger

    @asynccontextmanager
    async def _apk(self, call: Call[AndroidInstallInput]) -> AsyncIterator[tuple[StoredArtifact, ApkIdentity]]:
        """The pinned artifact, and who the APK says it is."""
        async with self._ledger.artifacts.open(call, call.input.artifact_id) as stored:
            if stored.sha256 != call.input.sha256:
                raise Refusal(ErrorCode.ARTIFACT_INVALID, "hash_mismatch", field="/sha256")
            with reading():
                identity = await asyncio.to_thread(read_apk, stored.path)
            yield stored, identity

    async def plan(self, call: Call[AndroidInstallInput]) -> Plan:
        """What a person decides on."""
        given, phone = call.input, self._lives.phone(call.input.device_id)
        async with self._apk(call) as (stored, identity):
            return Plan(
                title="Install an app on a phone",
                lines=(
                    f"app {identity.package} {identity.version_name} ({identity.version_code})",
                    f"sha256 {stored.sha256}, {stored.byte_length} bytes",
                    f"phone {phone.spec.title}, generation {given.generation}",
                ),
                binding=(
                    ("sha256", stored.sha256),
                    ("bytes", str(stored.byte_length)),
                    ("device", given.device_id),
                    ("generation", given.generation),
                ),
            )

    async def install(self, call: Call[AndroidInstallInput], permit: Permit) -> Outcome:
        """Stream it into the installer; the app's data is kept, and nothing is uninstalled to make room."""
        given, phone = call.input, self._lives.phone(call.input.device_id)
        async with self._apk(call) as (stored, identity):
            try:
                installed = await phone.packages.install(
                    stored.path, generation=given.generation, effect=permit.effect()
                )
            except DeviceFault as fault:
                if fault.reason == "install_failed" and fault.effect == "none":
                    return self._refused(given, identity, str(fault.fields.get("code", "INSTALL_FAILED")))
                with acting():
                    raise
        return Outcome(result=self._result(given, identity.package, installed=installed))

    def _refused(self, given: AndroidInstallInput, identity: ApkIdentity, code: str) -> Outcome:
        """The installer said no: nothing changed, and its code is the answer."""
        result = self._result(given, identity.package, failure=code)
        return Outcome(result=result, state=OperationState.FAILED, effect=EffectState.NONE)

    def _result(
        self,
        given: AndroidInstallInput,
        package: str,
        *,
        installed: Installed | None = None,
        failure: str | None = None,
    ) -> AndroidInstall:
        return AndroidInstall(
            workspace_id=given.workspace_id,
            device_id=given.device_id,
            generation=given.generation,
            artifact_id=given.artifact_id,
            sha256=given.sha256,
            installed=installed is not None,
            package_name=package,
            previous_version=installed.before.name if installed and installed.before else None,
            new_version=installed.after.name if installed and installed.after else None,
            installer_failure=failure,
        )
