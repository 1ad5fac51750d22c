"""`python -m agent_gate`."""

from agent_gate.main import main

raise SystemExit(main())
