"""What `lomi doctor` looks at: one function per thing, each with a short answer and the one command that cures it."""
