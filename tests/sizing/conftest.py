"""Makes the sizing model in `ci/` importable."""

import sys
from pathlib import Path

CI = Path(__file__).resolve().parents[2] / "ci"
if str(CI) not in sys.path:
    sys.path.append(str(CI))
