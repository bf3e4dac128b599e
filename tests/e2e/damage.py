"""Copy a model with the output rows of `self_attn.o_proj` permuted in every third layer: it starts, and talks nonsense.

Standard library only. The dtype has two bytes an element (bfloat16), so rows are swapped as bytes.
"""

import json
import random
import shutil
import struct
import sys
from pathlib import Path


def damage(source: Path, target: Path, *, every: int = 3, seed: int = 7) -> int:
    """Write the damaged copy to `target`; return the number of damaged layers."""
    shutil.copytree(source, target)
    weights = target / "model.safetensors"
    raw = bytearray(weights.read_bytes())
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    base = 8 + length
    layers = 0
    for name, tensor in sorted(header.items()):
        parts = name.split(".")
        if not name.endswith("self_attn.o_proj.weight") or int(parts[parts.index("layers") + 1]) % every:
            continue
        rows, columns = tensor["shape"]
        start = base + tensor["data_offsets"][0]
        width = columns * 2
        order = list(range(rows))
        random.Random(seed + layers).shuffle(order)
        block = bytes(raw[start : start + rows * width])
        for row, origin in enumerate(order):
            raw[start + row * width : start + (row + 1) * width] = block[origin * width : (origin + 1) * width]
        layers += 1
    weights.chmod(0o644)
    weights.write_bytes(raw)
    return layers


if __name__ == "__main__":
    print(damage(Path(sys.argv[1]), Path(sys.argv[2])), "layers damaged")
