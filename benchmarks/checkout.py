"""Imported first: lets a benchmark find the package of its own checkout, installed or not."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
