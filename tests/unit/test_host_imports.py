"""What a broker loads before anybody asks for it."""

import subprocess
import sys


def test_a_broker_loads_the_sdk_of_mcp_with_its_first_mcp_client() -> None:
    """Half of its start went into it, also for tests that speak to it in Python."""
    program = "import sys, lomi.host; print(*sorted({'mcp', 'pydantic'}.intersection(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=50)
    assert done.stdout == "\n"
