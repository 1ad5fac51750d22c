"""The commands of the phone's shell, by name."""

from emulator_images.paper.commands import (
    activity,
    agent,
    builtins,
    capture,
    display,
    files,
    input_events,
    log,
    package,
    system,
    text,
)
from emulator_images.paper.commands.calling import Call, Command
from emulator_images.paper.phone import Phone
from emulator_images.paper.shell.interpreter import Shell, Streams

COMMANDS: dict[str, Command] = {
    **builtins.COMMANDS,
    **files.COMMANDS,
    **text.COMMANDS,
    **system.COMMANDS,
    **package.COMMANDS,
    **activity.COMMANDS,
    **display.COMMANDS,
    **input_events.COMMANDS,
    **capture.COMMANDS,
    **log.COMMANDS,
    **agent.COMMANDS,
}


def new_shell(phone: Phone) -> Shell:
    """A shell on the phone as adbd starts one."""

    async def run(shell: Shell, words: list[str], streams: Streams) -> int:
        name = words[0].removeprefix("/system/bin/").removeprefix("/bin/")
        command = COMMANDS.get(name)
        if command is None:
            await streams.stderr.write(f"/system/bin/sh: {words[0]}: inaccessible or not found\n".encode())
            return 127
        return await command(Call(phone, shell, streams, name, tuple(words[1:])))

    variables = {
        "PATH": "/product/bin:/apex/com.android.runtime/bin:/system/bin:/vendor/bin",
        "ANDROID_ROOT": "/system",
        "ANDROID_DATA": "/data",
        "EXTERNAL_STORAGE": "/sdcard",
        "HOME": "/",
        "SHELL": "/bin/sh",
        "TMPDIR": "/data/local/tmp",
        "USER": "root" if phone.files.root else "shell",
        "HOSTNAME": "lomi_paper",
    }
    return Shell(phone.files, run, variables, pid=phone.next_pid + 3000)
