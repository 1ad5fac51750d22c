"""`python -m emulator_images.paper`: the emulator command of paper images."""

import os
import sys

from emulator_images.paper import avd, flags, running


def main(arguments: list[str]) -> int:
    """Run the emulator; returns its exit code."""
    try:
        wanted = flags.parse(arguments)
    except flags.UnknownFlagError as error:
        return _give_up(str(error), prefix="")
    if wanted.question is not None:
        return _answer(wanted.question)
    if not wanted.avd:
        return _give_up("No AVD specified. Use '@foo' or '-avd foo' to launch a virtual device named 'foo'\n")
    from emulator_images.paper import faults, process  # noqa: PLC0415 - questions are answered without the phone
    from emulator_images.paper.screen.description import BadAppDescriptionError  # noqa: PLC0415

    _say(f"INFO         | Android emulator version {running.VERSION} (build_id {running.BUILD}) (SIMULATED)")
    try:
        return process.run(wanted, os.environ, [sys.executable, "-m", "emulator_images.paper", *arguments])
    except (
        avd.UnknownAvdError,
        running.NoRunningDirectoryError,
        process.CannotStartError,
        faults.BadFaultPlanError,
        BadAppDescriptionError,
    ) as error:
        return _give_up(str(error))
    except avd.AvdLockedError as error:
        return _give_up(str(error), prefix="emulator: ERROR: ")


def _answer(question: str) -> int:
    if question == "list-avds":
        for name in avd.names(avd.directories(os.environ).avd_home):
            sys.stdout.write(name + "\n")
    elif question == "version":
        sys.stdout.write(f"Android emulator version {running.VERSION}.0 (build_id {running.BUILD}) (SIMULATED)\n")
    elif question == "accel-check":
        sys.stdout.write("accel:\n0\nA simulated phone needs no acceleration\naccel\n")
    else:
        sys.stdout.write("Android Emulator usage: emulator [options] [-qemu args]\n(simulated: see emulator_images)\n")
    return 0


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def _give_up(text: str, *, prefix: str = "ERROR        | ") -> int:
    _say(prefix + text)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
