"""Run by a Python that has an engine's published wheel in its path: the engine's own argument parser as plain data.

The parser itself imports torch and transformers; a stand-in image has neither. What an option is called, how many words
it takes, of which type and out of which choices is read from the parser's own actions and kept; types that are code of
the engine are kept by their name, and the real parser is asked about their values afterwards (test_containers_matrix).
"""

import argparse
import contextlib
import inspect
import json
import sys
from pathlib import Path
from typing import Any

_PLAIN = {"int": "int", "float": "float", "str": "str", "loads": "json"}


def main() -> None:
    with contextlib.redirect_stdout(sys.stderr):  # the engine's own words
        parser = {"vllm": _vllm, "sglang": _sglang}[sys.argv[1]]()
        version = _version(sys.argv[1])
    rows = [_row(action) for action in parser._actions if not isinstance(action, argparse._HelpAction)]
    print(json.dumps({"engine": sys.argv[1], "version": version, "options": rows}))


def _vllm() -> argparse.ArgumentParser:
    from vllm.entrypoints.cli.serve import ServeSubcommand
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    return ServeSubcommand().subparser_init(FlexibleArgumentParser().add_subparsers(dest="subparser"))


def _sglang() -> argparse.ArgumentParser:
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    return parser


def _version(package: str) -> str:
    module = __import__(package)
    (metadata,) = Path(str(module.__file__)).parents[1].glob(f"{package}-*.dist-info")
    return metadata.name.removeprefix(f"{package}-").removesuffix(".dist-info")


def _row(action: argparse.Action) -> dict[str, Any]:
    if isinstance(action, argparse.BooleanOptionalAction):
        kind = "boolean"
    elif action.nargs == 0:
        kind = "switch"
    else:
        kind = "append" if isinstance(action, argparse._AppendAction) else "value"
    return {
        "names": list(action.option_strings),
        "off": sorted(getattr(action, "negative_option_strings", ())),
        "dest": action.dest,
        "kind": kind,
        "nargs": action.nargs,
        "type": _type(action.type),
        "choices": sorted(map(str, action.choices)) if action.choices else None,
    }


def _type(given: Any) -> str:
    """`int`, `float`, `str`, `json`, or the name of the engine's own function."""
    if given is None:
        return "str"
    name = getattr(given, "__name__", repr(given))
    if name in ("_optional_type", "_parse_type"):
        inner = inspect.getclosurevars(given).nonlocals
        return next((_type(one) for one in inner.values() if callable(one)), name)
    return _PLAIN.get(name, name)


if __name__ == "__main__":
    main()
