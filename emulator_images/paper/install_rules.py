"""When the package manager refuses an APK, and what installing one changes."""

from emulator_images.paper.apk import Apk
from emulator_images.paper.faults import Fault
from emulator_images.paper.packages import Installed, stand_in_app
from emulator_images.paper.phone import Phone


class Refusal(Exception):  # noqa: N818 - a verdict, written as the package manager writes it
    """Raised when the package manager does not install; the text is `CODE: reason`."""


def install_apk(
    phone: Phone, apk: Apk, size: int, *, downgrade: bool, test_only: bool, grant: bool, refused: Fault | None
) -> Installed:
    """Install an APK, keeping the data of an older version; a planned fault `refused` speaks first.

    Raises:
        Refusal: one of the package manager's rules is broken.
    """
    if refused is not None:
        raise Refusal(refused.text or "INSTALL_FAILED_INSUFFICIENT_STORAGE")
    check(phone, apk, size, downgrade=downgrade, test_only=test_only)
    old = phone.packages.get(apk.package)
    now = phone.clock.now()
    app = stand_in_app(
        apk.package,
        apk.label,
        apk.launcher,
        (apk.version_code, apk.version_name),
        {"version": f"Version {apk.version_name} ({apk.version_code})"},
    )
    permissions = {name: grant or (old is not None and old.permissions.get(name, False)) for name in apk.permissions}
    package = Installed(
        app,
        f"/data/app/~~paper==/{apk.package}-{phone.journal.boot}==/base.apk",
        old.uid if old else phone.packages.take_uid(),
        min_sdk=apk.min_sdk,
        target_sdk=apk.target_sdk,
        signature=apk.certificate,
        size=size,
        installed_at=old.installed_at if old else now,
        updated_at=now,
        third_party=True,
        sideloaded=True,
        debuggable=apk.debuggable,
        activities=apk.activities,
        permissions=permissions,
    )
    if old is not None:
        phone.died(old.name)
        phone.stage.remove(old.name)
    phone.packages.put(package)
    phone.record(
        "install",
        package=apk.package,
        version_code=apk.version_code,
        version_name=apk.version_name,
        replaced=old.app.version_code if old else None,
        bytes=size,
    )
    phone.write_log("I", "PackageManager", f"Package {apk.package} installed", buffer="system")
    return package


def check(phone: Phone, apk: Apk, size: int, *, downgrade: bool, test_only: bool) -> None:
    """Hold an APK against the rules, in the package manager's order.

    Raises:
        Refusal: the first rule that is broken.
    """
    api = phone.avd.api
    if apk.min_sdk > api:
        raise Refusal(
            "INSTALL_FAILED_OLDER_SDK: Failed parse during installPackageLI: "
            f"Requires newer sdk version #{apk.min_sdk} (current version is #{api})"
        )
    _check_signature(apk)
    least = {34: 23}.get(api, 24 if api >= 35 else 0)
    if apk.target_sdk < least:
        raise Refusal(
            f"INSTALL_FAILED_DEPRECATED_SDK_VERSION: App package must target at least SDK version {least}, "
            f"but found {apk.target_sdk}"
        )
    if apk.test_only and not test_only:
        raise Refusal("INSTALL_FAILED_TEST_ONLY: Failed to install test-only apk. Did you forget to add -t?")
    if apk.abis and not apk.abis & set(phone.abis()):
        raise Refusal("INSTALL_FAILED_NO_MATCHING_ABIS: INSTALL_FAILED_NO_MATCHING_ABIS: "
                      "Failed to extract native libraries, res=-113")  # fmt: skip
    if not phone.files.has_room(size):
        raise Refusal("INSTALL_FAILED_INSUFFICIENT_STORAGE: Failed to override installation location")
    old = phone.packages.get(apk.package)
    if old is None:
        return
    if old.signature != apk.certificate:
        raise Refusal(
            f"INSTALL_FAILED_UPDATE_INCOMPATIBLE: Existing package {apk.package} signatures do not match "
            "newer version; ignoring!"
        )
    if apk.version_code < old.app.version_code and not (downgrade and (old.debuggable or apk.debuggable)):
        raise Refusal(
            f"INSTALL_FAILED_VERSION_DOWNGRADE: Downgrade detected: Update version code {apk.version_code} "
            f"is older than current {old.app.version_code}"
        )


def _check_signature(apk: Apk) -> None:
    if apk.scheme == 0:
        raise Refusal(
            "INSTALL_PARSE_FAILED_NO_CERTIFICATES: Failed to collect certificates from base.apk: "
            "Attempt to get length of null array"
        )
    if apk.scheme == 1 and apk.target_sdk >= 30:
        raise Refusal(
            "INSTALL_PARSE_FAILED_NO_CERTIFICATES: Scanning Failed.: No signature found in package of version 2 "
            f"or newer for package {apk.package}"
        )
