"""The wire: discovery file, enrolment, pinned TLS 1.3 over the private Unix socket, framing."""
