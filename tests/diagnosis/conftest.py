"""Puts the builders of this folder where its tests can import them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
