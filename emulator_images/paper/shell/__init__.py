"""The phone's shell: the part of mksh's grammar that tools use over adb, and the streams between commands."""
