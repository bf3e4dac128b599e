"""Words as a real bash hands them to the command: what is certain without running a script is read as bash runs it."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selfhost.visibility.readers.script import calls

DOCKER = 'docker() { for word in "$@"; do printf "%s\\037" "$word"; done; printf "\\036"; }\n'


def by_bash(script: str) -> list[list[str]]:
    done = subprocess.run(["bash", "-c", DOCKER + script], capture_output=True, text=True, timeout=20, check=False)
    return [call.split("\037")[:-1] for call in done.stdout.split("\036")[:-1]]


def by_us(script: str) -> list[list[str]]:
    return [[word.text for word in call.words[1:]] for call in calls(script) if call.program == "docker"]


@pytest.mark.parametrize(
    "script",
    [
        "docker a 'b c' \"d'e\" f\\ g h\\\n\ti",
        "A=1; docker $A \"$A\" '$A' \\$A ${A}2 \"x${A}y\"",
        'A="a b"; docker $A "$A" x$A"y" ${A}z',
        "A='  lead trail '; docker x${A}y",
        'A=(1 "2 3" 4); docker "${A[@]}" ${A[@]}x "p${A[*]}s"',
        "A=(1); A+=(2 '3 4')\ndocker \"${A[@]}\"",
        "A=x; A+=y; docker $A",
'A=; docker ${A} "${A}" "" ${NONE:-} x',
        "docker ${A:-b} ${A-c} \"${A:-d e}\" ${A:-'f'}",
        "A=; docker ${A:-b} ${A-c}",
        "A=1; docker ${A:-b} ${A:?no}",
        "docker a > /dev/null; docker b 2>&1 c; docker d &>/dev/null; docker e 2>/dev/null f",
        "docker a <<E b\ndocker not 'here\nE\ndocker c",
        "docker a <<-'E'\n\tdocker not\n\tE\ndocker b <<<'x y' c",
        "docker a # docker b\ndocker c#d '#e'",
        "docker a; docker b && docker c | cat; (docker d); { docker e; }",
        "if true; then docker a; fi; ! docker b",
        "f() { docker a; }; f; docker $'a\\tb\\'c' $\"d\"",
        "time docker a; command docker b",
        "export A=1 B='2 3'; docker $A \"$B\"; unset A; docker \"[$A]\" x",
        "docker a\r\ndocker b",
        "(( 1 << 2 )); docker a; ((x=1)); docker b",
        "A=1 B=2\ndocker $A$B",
        "docker {a} a=b --c=\"d e\" '' x",
        'eval "docker a \'b c\'"; bash -c ":" ; docker d',
        "readonly A=5; declare B=6; docker $A $B",
        "docker \\\n  # gone\ndocker b",
        "docker ÄÖ 🦀 'é'",
    ],
)  # fmt: skip
def test_words_are_those_of_bash(script: str) -> None:
    script = script.replace("\r\n", "\n") if "\r\n" in script else script
    seen = by_bash(script)
    ours = by_us(script)
    assert ours, script
    # what bash does not print to its stdout is not compared: a redirected call, one through `time`
    assert [call for call in ours if call in seen] == seen


QUOTINGS = ["'%s'", '"%s"', "%s", "\\%s", "$'%s'", "${A}%s", '"${B}%s"', "%s$B"]
WORDS = st.lists(st.tuples(st.sampled_from(QUOTINGS), st.text("ab c-=#+,.:/", max_size=5)), min_size=1, max_size=6)


@settings(max_examples=40, deadline=None)
@given(words=WORDS)
def test_however_words_are_quoted_they_are_those_of_bash(words: list[tuple[str, str]]) -> None:
    script = "A='1 2'; B='3  4'\ndocker x" + " ".join(quoting % text for quoting, text in words) + "\n"
    assert by_us(script) == by_bash(script)
