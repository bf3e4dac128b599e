"""Compose files: variables, env files, merging, what Compose refuses, and what only the run knows."""

from collections.abc import Mapping

import pytest

from selfhost.core.errors import InputError
from selfhost.shapes.workload import ContainerEngine, EnvSource, Workload
from selfhost.visibility.files import NO_FILES
from selfhost.visibility.readers.compose import read
from selfhost.visibility.readers.compose_command import split_words
from selfhost.visibility.readers.compose_interpolate import Filled, interpolate
from selfhost.visibility.readers.dotenv import entries


class Beside:
    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def text(self, path: str) -> str | None:
        return self._texts.get(path)


def service(text: str, beside: Mapping[str, str] | None = None, *, path: str = "compose.yaml") -> Workload:
    """The first service of a file."""
    return read(text, path=path, files=Beside(beside) if beside else NO_FILES)[0]


def of(body: str) -> Workload:
    return service(f"services:\n  a: {{{body}}}\n")


@pytest.mark.parametrize(
    ("text", "filled", "unknown"),
    [
        # docs.docker.com/reference/compose-file/interpolation
        ("$A-${A}", "1-1", ()),
        ("$$A ${A}$$", "$A 1$", ()),
        ("${N}", "${N}", ("N",)),
        ("$N.x", "${N}.x", ("N",)),
        ("${N:-d}", "d", ()),
        ("${N-d}", "d", ()),
        ("${E:-d}", "d", ()),
        ("${E-d}", "", ()),
        ("${A:-d}", "1", ()),
        ("${N:?why}", "${N}", ("N",)),
        ("${A?why}", "1", ()),
        ("${A:+x}", "x", ()),
        ("${E:+x}", "", ()),
        ("${E+x}", "x", ()),
        ("${N+x}", "", ()),
        ("${N:-${M:-${A}}}", "1", ()),
        ("${N:-${M}}", "${M}", ("M",)),
        ("${N:-a:b}", "a:b", ()),
        ("${N:-}", "", ()),
        ("é$A", "é1", ()),
        ("${N}${N}$M", "${N}${N}${M}", ("N", "M")),
    ],
)
def test_variables_are_filled_in_as_compose_does(text: str, filled: str, unknown: tuple[str, ...]) -> None:
    assert interpolate(text, {"A": "1", "E": ""}) == Filled(filled, unknown)


@pytest.mark.parametrize(
    "text", ["$", "a $ b", "$1", "${", "${A", "${}", "${1}", "${A B}", "${A:-${B}", "$(x)", "${A!}"]
)
def test_a_reference_that_compose_refuses_is_an_error_with_its_place(text: str) -> None:
    with pytest.raises(InputError) as caught:
        service(f"services:\n  a:\n    image: x\n    command: ['{text}']\n")
    error = caught.value
    assert error.place
    assert (error.id, error.place.line, error.place.column) == ("CF045", 4, 15)
    assert "$$" in error.fix[0]


def test_defaults_without_end_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        service("services:\n  a: {image: '" + "${A:-" * 500 + "}" * 500 + "'}\n")
    assert caught.value.id == "CF045"


@pytest.mark.parametrize(
    ("line", "value"),
    [
        # docs.docker.com/compose/how-tos/environment-variables/variable-interpolation/#env-file-syntax
        ("VAR=VAL", "VAL"),
        ('VAR="VAL"', "VAL"),
        ("VAR='VAL'", "VAL"),
        ("VAR=VAL # note", "VAL"),
        ("VAR=VAL#x", "VAL#x"),
        ('VAR="VAL # x" # y', "VAL # x"),
        ("VAR='$O ${O}'", "$O ${O}"),
        ("VAR=${O}x", "1x"),
        ('VAR="$O"', "1"),
        ("VAR=${P:-d}", "d"),
        ("export VAR=1", "1"),
        ("  VAR = 1  ", "1"),
        ("VAR: 1", "1"),
        ("VAR=", ""),
        ("VAR=#x", ""),
        (r'VAR="a\nb\"c"', 'a\nb"c'),
        ('VAR="a\nb"', "a\nb"),
        ("VAR='a\nb'", "a\nb"),
        ("VAR=a=b", "a=b"),
        ('VAR="open', '"open'),
    ],
)
def test_lines_of_an_env_file_are_read_as_compose_does(line: str, value: str) -> None:
    (entry,) = (entry for entry in entries(f"# first\n\n{line}\nNEXT=2\n", {"O": "1"}) if entry.name == "VAR")
    assert entry.value == Filled(value)
    assert entry.line == 3


def test_names_alone_are_passed_through_and_other_lines_passed_over() -> None:
    found = [(entry.name, entry.value, entry.line) for entry in entries("A\r\n=x\n%&\nB=1\r\nC=$B\n", {})]
    assert found == [("A", None, 1), ("B", Filled("1"), 4), ("C", Filled("1"), 5)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        # what mattn/go-shellwords makes of it
        ("--model  Qwen/Qwen3-8B\n", ["--model", "Qwen/Qwen3-8B"]),
        ("a 'b c' \"d e\"", ["a", "b c", "d e"]),
        (r"a\ b '\x' \n", ["a b", r"\x", ""]),
        ("a '' b", ["a", "", "b"]),
        ("--x='{\"a\": 1}'", ['--x={"a": 1}']),
        ("vllm serve m && rm -rf x", ["vllm", "serve", "m"]),
        ("a > b", ["a"]),
        ("a;b", ["a"]),
        ("a 'x;y' c", ["a", "x;y", "c"]),
        ("a $(b c) d", ["a", "$(b c)", "d"]),
        ("--a \\\n--b", ["--a", "--b"]),
        ("a # b", ["a", "#", "b"]),
        ("", []),
    ],
)
def test_a_command_that_is_one_text_is_split_as_compose_does(text: str, words: list[str]) -> None:
    assert split_words(text) == words


@pytest.mark.parametrize("text", ["a 'b", 'a "b', "a (b)", "a )", "a `b", "a \\", "a $$(b"])
def test_a_command_that_compose_refuses_is_an_error_with_its_place(text: str) -> None:
    with pytest.raises(InputError) as caught:
        service(f"services:\n  a:\n    image: x\n    command: |-\n      {text}\n")
    assert caught.value.place
    assert (caught.value.id, caught.value.place.line) == ("CF046", 4)


@pytest.mark.parametrize(
    ("body", "field", "value"),
    [
        ("gpus: 2", "count", 2),
        ("gpus: [{device_ids: [0]}]", "ids", ("0",)),
        ("gpus: [{}]", "capabilities", ("gpu",)),
        ("gpus: [{capabilities: [utility]}]", "capabilities", ("utility", "gpu")),
        ("deploy: {resources: {reservations: {devices: [{}]}}}", "capabilities", None),
        ("deploy: {resources: {reservations: {devices: [{capabilities: []}]}}}", "capabilities", ()),
        ("deploy: {resources: {reservations: {devices: [{count: 'all'}]}}}", "count", -1),
        ("deploy: {resources: {reservations: {devices: [{count: '2'}]}}}", "count", 2),
        ("deploy: {resources: {reservations: {devices: [{count: '${N:-3}'}]}}}", "count", 3),
        ("deploy: {resources: {reservations: {devices: [{count: many}]}}}", "count", None),
        (
            "deploy: {resources: {reservations: {devices: [{capabilities: [[gpu, compute]]}]}}}",
            "capabilities",
            ("gpu", "compute"),
        ),
        ("deploy: {resources: {reservations: {devices: [{device_ids: ['${GPU}']}]}}}", "ids", ("${GPU}",)),
    ],
)
def test_requests_in_their_spellings(body: str, field: str, value: object) -> None:
    (request,) = of(body).requests
    assert getattr(request, field) == value


@pytest.mark.parametrize(
    ("body", "field", "value"),
    [
        ("restart: no", "restart", "no"),
        ("restart: 'no'", "restart", "no"),
        ("user: 0", "user", "0"),
        ("deploy: {restart_policy: {condition: any}}", "restart", "always"),
        ("deploy: {restart_policy: {condition: none}}", "restart", "no"),
        ("shm_size: 1073741824", "shm_bytes", 2**30),
        ("shm_size: '${S:-2gb}'", "shm_bytes", 2**31),
        ("privileged: 'true'", "privileged", True),
        ("privileged: '${P:-false}'", "privileged", False),
        ("group_add: [0992]", "group_add", ("992",)),
        ("entrypoint: []", "entrypoint", ()),
        ("entrypoint: ''", "entrypoint", ()),
        ("entrypoint: null", "entrypoint", None),
        ("command: [1, 0x10, true]", "argv", ("1", "16", "true")),
        ("image: 'x/y:${T}'", "image", "x/y"),
        ("image: '${I}'", "image", ""),
        ("image: 5", "image", "5"),
        ("tmpfs: [/a, '/b:size=1m']", "opaque", ()),
        ("userns_mode: keep-id", "userns", "keep-id"),
    ],
)
def test_single_values(body: str, field: str, value: object) -> None:
    assert getattr(of(body), field) == value


@pytest.mark.parametrize(
    ("body", "opaque"),
    [
        ("gpus: $G", "--gpus"),
        ("gpus: [{count: $N}]", "--gpus"),
        ("devices: ['$D']", "--device"),
        ("runtime: $R", "--runtime"),
        ("group_add: ['$G']", "--group-add"),
        ("shm_size: $S", "--shm-size"),
        ("ipc: $I", "--ipc"),
        ("privileged: $P", "--privileged"),
        ("env_file: gone.env", "--env-file gone.env"),
        ("extends: {service: b, file: gone.yaml}", "extends gone.yaml"),
    ],
)
def test_what_only_the_run_knows_is_said_to_be_missing(body: str, opaque: str) -> None:
    found = of(body)
    assert found.opaque == (opaque,)
    assert (found.devices, found.requests, found.runtime, found.group_add, found.shm_bytes) == ((), (), "", (), None)


def test_one_anchor_serves_several_services_with_unknown_values() -> None:
    text = "x-e: &e {T: '${T}', U: '${U:-1}'}\nservices:\n  a: {environment: *e}\n  b: {environment: {<<: *e, T: x}}\n"
    first, second = read(text, path="compose.yaml", files=NO_FILES)
    assert (first.env, first.env_sources) == ({"U": "1"}, {"T": EnvSource.PASSED_THROUGH})
    assert (second.env, second.env_sources) == ({"U": "1", "T": "x"}, {})
    assert first.at["env.T"].line == first.at["env.U"].line == 1


def test_an_override_beside_the_usual_name_is_laid_over_it() -> None:
    text = (
        "services:\n  a:\n    image: x\n    command: [a]\n    devices: ['/dev/dri:/dev/dri', /dev/kfd]\n"
        "    environment: [A=1, B=2]\n    cap_add: [X]\n    shm_size: 1g\n    group_add: [1]\n"
    )
    over = (
        "services:\n  a:\n    command: [b]\n    devices: ['/dev/dri/renderD128:/dev/dri']\n    environment: {B: 3}\n"
        "    cap_add: [X, Y]\n    shm_size: !reset null\n    group_add: !override [2]\n  new: {image: y}\n"
    )
    beside = {"compose.override.yaml": over}
    first, new = read(text, path="d/compose.yaml", files=Beside(beside))
    assert (first.argv, first.env, first.cap_add) == (("b",), {"A": "1", "B": "3"}, ("X", "Y"))
    assert [device.source for device in first.devices] == ["/dev/dri/renderD128", "/dev/kfd"]
    assert (first.shm_bytes, first.group_add, new.name) == (None, ("2",), "new")
    assert first.at["name"].line == 2
    assert not first.at["name"].path
    assert (first.at["argv.0"].path, first.at["env.A"].path) == ("d/compose.override.yaml", "")
    assert service(text, beside, path="stack.yaml").argv == ("a",)


def test_services_extend_each_other_through_files_and_folders() -> None:
    beside = {
        "../base/all.yaml": "services:\n  a: {extends: {service: b}, image: a}\n  b: {env_file: e.env, ipc: host}\n",
        "../base/e.env": "A=1\n",
    }
    found = service(
        "services:\n  x: {extends: {file: ../base/all.yaml, service: a}, ipc: private}\n", beside, path="d/f.yaml"
    )
    assert (found.image, found.ipc, found.env) == ("a", "private", {"A": "1"})
    assert (found.at["env.A"].path, found.at["image"].path) == ("base/e.env", "base/all.yaml")


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("services: [a]\n", 1, "`services` is no map"),
        ("services:\n  a: [x]\n", 2, "service `a` is no map"),
        ("just words\n", 1, "no Compose file"),
        ("- a\n", 1, "no Compose file"),
        ("services:\n  a: {extends: b}\n", 2, "extends `b`, which compose.yaml does not have"),
        ("services:\n  a: {extends: b}\n  b: {extends: a}\n", 3, "extends itself"),
        ("services:\n  a:\n    extends: a\n", 3, "extends itself"),
    ],
)
def test_a_file_that_compose_refuses_is_an_error_with_its_place(text: str, line: int, says: str) -> None:
    with pytest.raises(InputError) as caught:
        service(text)
    error = caught.value
    assert error.place
    assert (error.id, error.place.line) == ("CF044", line)
    assert says in error.what


def test_files_that_include_each_other_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        service("include: [b.yaml]\nservices: {a: {}}\n", {"b.yaml": "include: [b.yaml]\n"})
    assert caught.value.id == "CF044"


DOUBLED = "A0=xx\n" + "".join(f"A{n}=$A{n - 1}$A{n - 1}\n" for n in range(1, 64))
CHAIN = "services:\n  s0: {image: x}\n" + "".join(f"  s{n}: {{extends: s{n - 1}}}\n" for n in range(1, 500))


@pytest.mark.parametrize(
    ("text", "beside", "id"),
    [
        ("services: {a: {command: [" + "$A14, " * 5000 + "]}}\n", {".env": DOUBLED}, "CF045"),
        ("services: {a: {command: '" + "$A14" * 5000 + "'}}\n", {".env": DOUBLED}, "CF045"),
        ("services: {a: {command: '$A63'}}\n", {".env": DOUBLED}, ""),
        (CHAIN, {}, "CF044"),
        ("include: [b0]\nservices: {a: {}}\n", {f"b{n}": f"include: [b{n + 1}, b{n + 1}]" for n in range(40)}, ""),
        ("include: [" + ", ".join(f"b{n}" for n in range(60)) + "]\nservices: {a: {}}\n", {}, "CF044"),
        ("services: {a: {env_file: e}}\n", {"e": "A='\n" * 30_000}, ""),
        ("services: {a: {command: '" + "\\x " * 30_000 + "'}}\n", {}, ""),
    ],
    ids=range(8),
)
def test_a_project_made_to_exhaust_its_reader_is_read_or_refused(text: str, beside: dict[str, str], id: str) -> None:
    refused = ""
    try:
        service(text, beside)
    except InputError as error:
        refused = error.id
    assert refused == id


def test_an_empty_file_is_named_so() -> None:
    with pytest.raises(InputError) as caught:
        service("# nothing yet\n")
    assert (caught.value.id, caught.value.what) == ("CF054", "compose.yaml is empty")


@pytest.mark.parametrize(
    "text", ["services:\n", "services: {}\n", "include: [gone.yaml]\n", "x-a: {b: '$'}\n", "name: x\n"]
)
def test_a_file_without_services_starts_nothing(text: str) -> None:
    assert read(text, path="compose.yaml", files=NO_FILES) == ()


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        ("services: {a: {image: x}}\n", ContainerEngine.DOCKER),
        ("x-podman: {in_pod: false}\nservices: {a: {image: x}}\n", ContainerEngine.UNKNOWN),
        ("services: {a: {image: x, x-podman.uidmaps: []}}\n", ContainerEngine.UNKNOWN),
    ],
)
def test_docker_starts_it_unless_podman_is_spoken_to(text: str, engine: ContainerEngine) -> None:
    assert service(text).container_engine is engine


def test_a_reset_takes_away_what_lies_deep_in_a_service() -> None:
    text = "services:\n  a: {environment: {A: 1, B: 2}, deploy: {resources: {reservations: {devices: [{count: 1}]}}}}\n"
    over = "services: {a: {environment: {A: !reset null}, deploy: {resources: !reset null}}}\n"
    found = service(text, {"compose.override.yml": over})
    assert (found.env, found.env_sources, found.requests) == ({"B": "2"}, {}, ())


def test_names_for_the_driver_cdi_are_cdi_devices() -> None:
    found = service(
        "services:\n  a:\n    gpus:\n      - driver: cdi\n"
        "        device_ids: [nvidia.com/gpu=0, 'amd.com/gpu=all', 1]\n"
    )
    assert [(name.kind, name.name) for name in found.cdi] == [("nvidia.com/gpu", "0"), ("amd.com/gpu", "all")]
    assert (found.at["cdi.1"].line, found.at["cdi.1"].column) == (5, 40)
    assert [request.driver for request in found.requests] == ["cdi"]
