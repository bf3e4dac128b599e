"""What a fix gives to paste stands in the words of the file that it is for."""

import re
from pathlib import Path

import pytest

from selfhost.shapes.workload import Form, Workload
from selfhost.visibility.paste_options import options
from tests.visibility.test_visibility_rules import case_id, cases, found

OPTION = re.compile(
    r"(?:--(?:device|gpus|security-opt|cap-add|group-add|env|volume|shm-size|ipc|runtime)\b|-[ev] |export )"
)
PAIRS = (
    ("--device", "/dev/kfd"),
    ("--device", "/dev/dri"),
    ("-e", "A=b"),
    ("--group-add", "992"),
    ("--security-opt", "seccomp=unconfined"),
)
FILES = [path for path in cases("bad") if path.suffix in (".yaml", ".container")]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (Form.RUN, "--device /dev/kfd --device /dev/dri -e A=b --group-add 992 --security-opt seccomp=unconfined"),
        (
            Form.COMPOSE,
            (
                "devices:\n  - /dev/kfd\n  - /dev/dri\nenvironment:\n  - A=b\n"
                'group_add:\n  - "992"\nsecurity_opt:\n  - seccomp=unconfined'
            ),
        ),
        (
            Form.QUADLET,
            "AddDevice=/dev/kfd\nAddDevice=/dev/dri\nEnvironment=A=b\nGroupAdd=992\nSeccompProfile=unconfined",
        ),
    ],
)
def test_options_are_written_as_the_form_writes_them(form: Form, text: str) -> None:
    assert options(Workload(name="a", argv=(), form=form), *PAIRS) == text


def test_a_variable_alone_is_written_for_pods_and_shells_too() -> None:
    assert options(Workload(name="a", argv=(), form=Form.POD), ("-e", "A=b")) == ('env:\n  - name: A\n    value: "b"')
    assert options(Workload(name="a", argv=(), form=Form.PROCESS), ("-e", "A=b"), ("-e", "C=d")) == (
        "export A=b\nexport C=d"
    )


@pytest.mark.parametrize("path", FILES, ids=case_id)
def test_no_option_of_a_run_line_is_to_be_pasted_into_a_file(path: Path) -> None:
    number = path.parent.name
    actions = [action for finding in found(path) if finding.id == number for action in finding.fix]
    lines = [line for action in actions for line in action.split("\n")[1:]]
    assert [line for line in lines if OPTION.match(line)] == []
