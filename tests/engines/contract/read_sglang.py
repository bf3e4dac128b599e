"""Run by a Python that has SGLang's wheel in its path: command lines in on stdin, what the parser made of them out."""

import argparse
import contextlib
import io
import json
import sys
from pathlib import Path


def main() -> None:
    lines = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):  # the engine's own words
        answer = _read(lines)
    print(json.dumps(answer, default=str))


def _read(lines: list[list[str]]) -> dict[str, object]:
    import sglang
    from sglang.srt.environ import envs
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    actions = {name: action for action in parser._actions for name in action.option_strings}
    (metadata,) = Path(sglang.__file__).parents[1].glob("sglang-*.dist-info")
    return {
        "version": metadata.name.removeprefix("sglang-").removesuffix(".dist-info"),
        "lines": [_parse(parser, line) for line in lines],
        "flags": sorted(actions),
        "variables": [name for name in dir(type(envs)) if name.startswith("SGLANG_")],
        "values": {name: list(action.choices) for name, action in actions.items() if action.choices},
    }


def _parse(parser: argparse.ArgumentParser, line: list[str]) -> dict[str, object]:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return {"parsed": vars(parser.parse_args(line))}
    except SystemExit:
        return {"refused": said.getvalue().strip().splitlines()[-1]}


if __name__ == "__main__":
    main()
