"""What an emulator's last words mean."""

import re

_CAUSES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (reason, re.compile(pattern, re.IGNORECASE))
    for reason, pattern in (
        ("avd_locked", r"multiple emulators with the same AVD|AVD.{0,40}(already running|is locked|in use)"),
        ("avd_image_corrupt", r"image is corrupt|corrupt(ed)? (image|qcow2|userdata)|qcow2: .*corrupt|bad magic"),
        (
            "no_kvm",
            r"permissions to use KVM|/dev/kvm (is not|not) (found|accessible)|(requires|no) hardware acceleration",
        ),
        (
            "no_kvm",
            r"KVM is not installed|failed to initialize (kvm|hvf|whpx)",
        ),
        ("no_space", r"no space left on device|not enough (disk )?space|enough space"),
        ("no_memory", r"cannot allocate memory|not enough (memory|ram)|failed to allocate.*memory|std::bad_alloc"),
        (
            "port_taken",
            r"(cannot|unable to|could not|failed to) (bind|use).{0,40}port|port.{0,40}(already|is) (in use|taken|used)",
        ),
        (
            "port_taken",
            r"address already in use|too many emulator instances",
        ),
        ("no_avd", r"unknown AVD name|cannot find AVD|missing AVD|no such AVD|could not find.*\.ini"),
    )
)


def cause_of(output: str) -> str:
    """The reason an emulator gave for ending, `emulator_exited` when it named none that is known."""
    return next((reason for reason, pattern in _CAUSES if pattern.search(output)), "emulator_exited")
