"""Keep every visible CUDA card busy with BF16 matrix products for some seconds."""

import argparse
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, required=True)
end = time.monotonic() + parser.parse_args().seconds
pairs = [
    (torch.randn(8192, 8192, device=f"cuda:{n}", dtype=torch.bfloat16), f"cuda:{n}")
    for n in range(torch.cuda.device_count())
]
while time.monotonic() < end:
    for matrix, device in pairs:
        torch.matmul(matrix, matrix)
        torch.cuda.synchronize(device)
