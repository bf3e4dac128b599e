"""Launch scripts as people write them, read without running them."""

import pytest

from selfhost.core.errors import InputError
from selfhost.visibility.readers.process import read

SERVE = "python3 -m vllm.entrypoints.openai.api_server --model /m"


@pytest.mark.parametrize(
    ("script", "argv_end", "env"),
    [
        (f"exec {SERVE}", "/m", {}),
        (f"A=1 {SERVE}", "/m", {"A": "1"}),
        (f"exec env A=1 B='x y' {SERVE}", "/m", {"A": "1", "B": "x y"}),
        (f"A=1 exec {SERVE}", "/m", {"A": "1"}),
        (f"export A=1 B=2\nunset A\n{SERVE}", "/m", {"B": "2"}),
        (f"A=1\nexport A\n{SERVE}", "/m", {"A": "1"}),
        (f"A=1\n{SERVE}", "/m", {}),
        (f"export A=1\nA=2\n{SERVE}", "/m", {"A": "2"}),
        (f'export A="$(cat key)"\n{SERVE}', "/m", {}),
        (f"export A=`cat key`; {SERVE}", "/m", {}),
        (f'export A="${{HOME}}/x"\n{SERVE}', "/m", {}),
        (f"export A='$HOME'\n{SERVE}", "/m", {"A": "$HOME"}),
        (f'export A="5$"\n{SERVE}', "/m", {"A": "5$"}),
        (f"nohup {SERVE} --port 1 > log 2>&1 &", "1", {}),
        (f"exec {SERVE} \\\n  --x  # not this\n", "--x", {}),
        (f"if true; then\n  export A=1\nfi\n{SERVE}", "/m", {"A": "1"}),
        ("/opt/v/bin/vllm serve /m --port 2", "2", {}),
        ("python -m sglang.launch_server --model-path /m", "/m", {}),
        (f"exec {SERVE} --a 'x\ny'", "x\ny", {}),
        (f'exec {SERVE} --a "q\\"q\\\\ \\n"', 'q"q\\ \\n', {}),
        (f'if $(jq -e "any(. == \\"$NAME\\")" c.json); then echo; fi\n{SERVE}', "/m", {}),
        (f'A=$(basename "$(dirname "$0")")\nexport B=1\n{SERVE}', "/m", {"B": "1"}),
    ],
)  # fmt: skip
def test_scripts_are_read_as_a_shell_would(script: str, argv_end: str, env: dict[str, str]) -> None:
    workload = read(script, path="run.sh")
    assert workload.argv[-1] == argv_end
    assert workload.env == env


def test_lines_are_those_of_the_file() -> None:
    workload = read(f"#!/bin/sh\nexport A='1\n2'\nexport B=3\n{SERVE}\n", path="run.sh")
    lines = {key: spot.line for key, spot in workload.at.items() if key.startswith("env.")}
    assert lines == {"env.A": 2, "env.B": 4}


@pytest.mark.parametrize("script", ["", "echo hello\n", "export A=1\n", "python script.py\n"])
def test_a_script_that_starts_no_engine_is_refused(script: str) -> None:
    with pytest.raises(InputError) as caught:
        read(script, path="run.sh")
    assert caught.value.id == "CF021"


@pytest.mark.parametrize("script", ["export A='x\n", 'echo "x\n'])
def test_an_unclosed_quote_is_named_with_its_line(script: str) -> None:
    with pytest.raises(InputError, match="line 1") as caught:
        read(script, path="run.sh")
    assert caught.value.id == "CF022"
    assert caught.value.fix[0].endswith("sh -n run.sh")
