"""Stands for the server of a GPU engine inside its image: `stand_in.py vllm serve MODEL …`, `… sglang serve …`.

It takes its words as the engine's own parser does (grammar.py), prints what a container was given as one line of JSON,
and serves as the healthy toy engine with this engine's face. Standard library only.
"""

import argparse
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import engine

HERE = Path(__file__).parent
_TYPES: dict[str, Any] = {"int": int, "float": float, "str": str, "json": json.loads}
_TOLD = ("CUDA", "NVIDIA", "HIP", "ROCR", "ONEAPI", "ZE_", "VLLM_", "SGLANG_", "HF_", "HOME", "USER", "LD_LIBRARY")
_ORDINARY = {
    *("null", "zero", "full", "random", "urandom", "tty", "console", "ptmx", "pts", "mqueue", "shm"),
    *("stdin", "stdout", "stderr", "fd", "core"),
}


def main() -> None:
    name, words = sys.argv[1], sys.argv[2:]
    grammar = json.loads((HERE / f"{name}.grammar.json").read_text())
    if words[:1] != ["serve"]:
        raise SystemExit(f"{name}: a stand-in knows `serve` only, not {words[:1]}")
    words = words[1:]
    if name == "vllm" and any(word.partition("=")[0] == "--model" for word in words):
        raise SystemExit("With `vllm serve`, you should provide the model as a positional argument")
    parsed = vars(parser_of(grammar, name).parse_args([_dashed(word) for word in words] if name == "vllm" else words))
    print(
        "stand-in " + json.dumps({"engine": name, "version": grammar["version"], "argv": words, **seen()}), flush=True
    )
    serve(name, grammar["version"], parsed)


def _dashed(word: str) -> str:
    """vLLM takes underscores in names of options."""
    option, equals, value = word.partition("=")
    return option.replace("_", "-") + equals + value if word.startswith("--") else word


def parser_of(grammar: dict[str, Any], name: str) -> argparse.ArgumentParser:
    # argparse's own default in both engines: a unique beginning of an option stands for it
    parser = argparse.ArgumentParser(prog=f"{name} serve")
    for row in grammar["options"]:
        dest = {} if not row["names"] else {"dest": row["dest"]}
        if row["kind"] in ("switch", "boolean"):
            on = [option for option in row["names"] if option not in row["off"] and not _is_no(option, row)]
            off = [option for option in row["names"] if option not in on]
            parser.add_argument(*on, action="store_true", default=None, **dest)
            if off:
                parser.add_argument(*off, action="store_false", default=None, **dest)
            continue
        parser.add_argument(
            *(row["names"] or [row["dest"]]),
            **dest,
            action="append" if row["kind"] == "append" else "store",
            nargs=row["nargs"],
            type=_choice_type(row),
            choices=row["choices"] if row["type"] == "str" else None,
            default=None,
        )
    return parser


def _is_no(option: str, row: dict[str, Any]) -> bool:
    return row["kind"] == "boolean" and option.startswith("--no-") and f"--{option[5:]}" in row["names"]


def _choice_type(row: dict[str, Any]) -> Any:
    return _TYPES.get(row["type"], str)


def seen() -> dict[str, Any]:
    """What a process in this container was given."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    return {
        "devices": {str(path): _kind(path) for path in sorted(_devices(Path("/dev")))},
        "user": [os.getuid(), os.getgid()],
        "groups": sorted(os.getgroups()),
        "capabilities": {key: status[key].strip() for key in ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp")},
        "environment": sorted(os.environ),
        "values": {key: value for key, value in os.environ.items() if key.startswith(_TOLD) and "KEY" not in key},
        "writable": [path for path in ("/", "/model", "/var/tmp", "/tmp") if os.access(path, os.W_OK)],
        "shm_bytes": os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize,
    }


def _devices(folder: Path) -> list[Path]:
    found: list[Path] = []
    for path in folder.iterdir():
        if path.name in _ORDINARY:
            continue
        found += _devices(path) if path.is_dir() and not path.is_symlink() else [path]
    return found


def _kind(path: Path) -> str:
    mode = path.lstat().st_mode
    if not stat.S_ISCHR(mode):
        return "link" if stat.S_ISLNK(mode) else "no device"
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
    except OSError as error:
        return error.strerror or "closed"
    return "opens"


def serve(name: str, version: str, parsed: dict[str, Any]) -> None:
    """The toy engine with the options of this one under its own names."""
    if name == "vllm":
        model, context, slots = parsed["model_tag"], parsed["max_model_len"], parsed["max_num_seqs"]
        names, key = parsed["served_model_name"] or [model], os.environ.get("VLLM_API_KEY", "")
    else:
        model, context, slots = parsed["model_path"], parsed["context_length"], parsed["max_running_requests"]
        names, key = [parsed["served_model_name"] or model], parsed["api_key"] or ""
    if not (Path(model) / "config.json").is_file():
        raise SystemExit(f"OSError: {model} does not appear to have a file named config.json")
    options = engine.Options(
        host=parsed["host"] or "127.0.0.1",
        port=int(parsed["port"] or {"vllm": 8000, "sglang": 30000}[name]),
        model=model,
        served_name=names[0],
        context=int(context or engine.context_of(model)),
        slots=int(slots or 8),
        parser=parsed["reasoning_parser"] or "",
        template_defaults=parsed["default_chat_template_kwargs"] or {},
        key=key,
        faults=frozenset(one for one in os.environ.get("FAKE_ENGINE_FAULT", "").split(",") if one),
        face=name,
        version=version,
        metrics=name == "vllm" or bool(parsed["enable_metrics"]),
    )
    engine.run(options, start_s=float(os.environ.get("FAKE_ENGINE_START_S", "0.2")))


if __name__ == "__main__":
    main()
