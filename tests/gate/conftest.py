"""Makes the gate, which lies beside the commands of ci/, importable."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2] / "ci"), str(Path(__file__).parent)]
