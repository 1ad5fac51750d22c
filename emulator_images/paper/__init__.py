"""`paper`, a simulated phone that runs as an emulator process and speaks real adb.

Paper is not Android and says so wherever it could be taken for it: the picture carries the word SIMULATED, the model is
`Lomi Paper`, and the property `ro.lomi.simulated` is `true`. Pushed device code (dex, jars, instrumentation) cannot run
here and fails loudly with `Aborted`, exit code 134.

Start it like the real emulator: `python -m emulator_images.paper -avd NAME -ports CONSOLE,ADB -no-window`.
"""
