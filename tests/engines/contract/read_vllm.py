"""Run by a Python that has vLLM's wheel in its path: command lines in on stdin, what the parser made of them out."""

import contextlib
import importlib
import io
import json
import sys
from typing import get_args


def _first(*names: str) -> object:
    """The module moved between versions."""
    for name in names:
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(name)
    raise ModuleNotFoundError(names)


def main() -> None:
    lines = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):  # the engine's own words
        answer = _read(lines)
    print(json.dumps(answer, default=str))


def _read(lines: list[list[str]]) -> dict[str, object]:
    import vllm
    import vllm.envs
    from vllm.config.cache import CacheDType
    from vllm.config.kernel import LinearBackend, MoEBackend
    from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS
    from vllm.model_executor.model_loader import _LOAD_FORMAT_TO_MODEL_LOADER
    from vllm.reasoning import ReasoningParserManager
    from vllm.tool_parsers import ToolParserManager
    from vllm.utils.argparse_utils import FlexibleArgumentParser
    from vllm.v1.attention.backends.registry import AttentionBackendEnum

    args = _first("vllm.entrypoints.common.cli_args", "vllm.entrypoints.launchers.cli_args")
    parser = args.make_arg_parser(FlexibleArgumentParser())  # type: ignore[attr-defined]
    served = _serve(FlexibleArgumentParser())
    return {
        "version": vllm.__version__,
        "lines": [_parse(parser, line) if line[0].startswith("-") else _parse_served(served, line) for line in lines],
        "flags": sorted({name for action in parser._actions for name in action.option_strings}),
        "variables": list(vllm.envs.environment_variables),
        "values": {
            "--kv-cache-dtype": get_args(CacheDType),
            "--quantization": list(QUANTIZATION_METHODS),
            "--load-format": list(_LOAD_FORMAT_TO_MODEL_LOADER),
            "--attention-backend": [backend.name for backend in AttentionBackendEnum],
            "--linear-backend": get_args(LinearBackend),
            "--moe-backend": get_args(MoEBackend),
            "--reasoning-parser": sorted(
                {*ReasoningParserManager.lazy_parsers, *ReasoningParserManager.reasoning_parsers}
            ),
            "--tool-call-parser": sorted({*ToolParserManager.lazy_parsers, *ToolParserManager.tool_parsers}),
        },
    }


def _serve(parser: object) -> object:
    """The parser of `vllm serve`, which is the entrypoint of the image."""
    from vllm.entrypoints.cli.serve import ServeSubcommand

    ServeSubcommand().subparser_init(parser.add_subparsers(dest="subparser"))  # type: ignore[attr-defined]
    return parser


def _parse_served(parser: object, line: list[str]) -> dict[str, object]:
    """A line that begins with the model, as the image's entrypoint takes it."""
    heard = _parse(parser, ["serve", *line])
    parsed = heard.get("parsed")
    if isinstance(parsed, dict):
        parsed["model"] = parsed["model_tag"]  # ServeSubcommand.cmd
    return heard


def _parse(parser: object, line: list[str]) -> dict[str, object]:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return {"parsed": vars(parser.parse_args(line))}  # type: ignore[attr-defined]
    except SystemExit:
        return {"refused": said.getvalue().strip().splitlines()[-1]}
    except Exception as error:  # noqa: BLE001 - vLLM's own types raise their own
        return {"refused": repr(error)}


if __name__ == "__main__":
    main()
