"""GGUF file → ordinary model directory. Run as a script by the engine's Python, which has transformers and torch.

python convert_gguf.py FOLDER FILE.gguf OUT
"""

import ctypes
import importlib
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h: end with the process that started us, however that one ends


def main(folder: str, file: str, out: str) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers")
    # Without dequantize=True the model keeps packed weights, which save_pretrained refuses to write.
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=file, dtype=torch.bfloat16, quantization_config=transformers.GgufConfig(dequantize=True)
    )
    model.save_pretrained(out)
    transformers.AutoTokenizer.from_pretrained(folder, gguf_file=file).save_pretrained(out)


if __name__ == "__main__":
    main(*sys.argv[1:4])
