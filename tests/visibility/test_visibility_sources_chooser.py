"""Which reader a text is for, and what is read of texts that hold others."""

import pytest

from selfhost.core.errors import InputError
from selfhost.shapes.workload import ContainerEngine, EnvSource, Form, Spot, Workload
from selfhost.visibility.files import NO_FILES
from selfhost.visibility.readers.inner import unwrapped
from selfhost.visibility.sources import form_of, read_source

COMPOSE = "services:\n  llm:\n    image: vllm/vllm-openai\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n"


@pytest.mark.parametrize(
    ("path", "text", "form"),
    [
        ("compose.yaml", "", "compose"),
        ("compose.gpu.yml", "x", "compose"),
        ("docker-compose.override.yml", "", "compose"),
        ("a/b/podman-compose.yaml", "", "compose"),
        ("stack.yaml", COMPOSE, "compose"),
        ("stdin", f"# mine\n{COMPOSE}", "compose"),
        ("pod.yaml", POD, "kubernetes"),
        ("pod.yaml", f"---\n# x\nkind: Pod\n{POD}", "kubernetes"),
        ("all.yaml", f"# Source: chart/templates/a.yaml\n{POD}", "helm"),
        ("x.json", '[{"Id": "1", "HostConfig": {}}]', "inspect"),
        ("stdin", '  [\n{"Id": "1",\n "HostConfig": {}}]', "inspect"),
        ("x.json", '{"apiVersion": "v1", "kind": "List", "items": []}', "kubernetes"),
        ("x.json", '{"services": {"a": {}}}', "compose"),
        (".devcontainer/devcontainer.json", "{}", "devcontainer"),
        ("vllm.container", "", "quadlet"),
        ("stdin", "# x\n[Container]\nImage=x\n", "quadlet"),
        ("x.kube", "[Kube]\n", "kube"),
        ("x.volume", "[Volume]\n", "nothing"),
        ("x.service", "", "service"),
        ("run.sh", "", "script"),
        ("job.sbatch", "", "script"),
        ("run", "#!/usr/bin/env bash\n", "script"),
        ("stdin", "docker run --gpus all x/y\n", "script"),
        ("stdin", "CUDA_VISIBLE_DEVICES=1 vllm serve m\n", "script"),
        ("README.md", "", "markdown"),
        # none of ours
        (".github/workflows/ci.yaml", "on: push\njobs:\n  a:\n    services:\n      b:\n        image: x\n", ""),
        (".gitlab-ci.yml", "image: x\nservices:\n  - docker:dind\n", ""),
        ("values.yaml", "services:\n  web:\n    port: 80\n", ""),
        ("values.yaml", "image: vllm/vllm-openai\nresources: {}\n", ""),
        ("notes.yaml", "text: docker run is a command\n", ""),
        ("package.json", '{"scripts": {"x": "docker run y"}}', ""),
        ("machine.json", '{"schema": "selfhost.snapshot/1", "files": {}}', ""),
        ("stdin", "hello\n", ""),
        ("stdin", "", ""),
    ],
)  # fmt: skip
def test_a_text_is_known_by_its_name_then_by_what_it_says(path: str, text: str, form: str) -> None:
    assert form_of(text, path=path) == form


@pytest.mark.parametrize(("text", "says"), [("", "x.txt is empty"), ("hello", "none of the forms")])
def test_what_is_none_of_ours_is_refused_with_the_forms_that_are(text: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        read_source(text, path="x.txt", files=NO_FILES)
    assert caught.value.id == "CF054"
    assert says in caught.value.what
    for form in ("Compose", "Quadlet", "Kubernetes", "script", "inspect"):
        assert form in caught.value.why


def test_a_script_gives_containers_steps_and_engines_in_its_order() -> None:
    text = "#SBATCH --gpus=2\ndocker run a/b\nsrun --container-image=c/d x\nexport A=1\nvllm serve m\necho done\n"
    found = read_source(text, path="job.sh", files=NO_FILES)
    assert [(workload.form, workload.image) for workload in found] == [
        (Form.RUN, "a/b"), (Form.BATCH, "c/d"), (Form.PROCESS, ""),
    ]  # fmt: skip
    assert {workload.job["gpus"] for workload in found} == {"2"}
    assert found[2].env == {"A": "1"}


@pytest.mark.parametrize(
    "text", ["echo hello\n", "docker ps\ndocker compose run x\n", "alias d='docker run x'\n", ": exec\n"]
)
def test_a_script_that_starts_nothing_is_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        read_source(text, path="x.sh", files=NO_FILES)
    assert caught.value.id == "CF021"


def test_an_open_quote_is_named_with_its_line() -> None:
    with pytest.raises(InputError) as caught:
        read_source("docker run x\n\ndocker run 'y\n", path="x.sh", files=NO_FILES)
    assert (caught.value.id, caught.value.place and caught.value.place.line) == ("CF022", 3)


def test_blocks_of_a_document_keep_their_lines_and_prompts_are_no_words() -> None:
    text = (
        "# How\n\n```console\n$ docker run --gpus all a/b\n```\n\n"
        "1. then\n   ```bash\n   podman run c/d\n   ```\n```\ntext 'only\n```\n"
    )
    found = read_source(text, path="README.md", files=NO_FILES)
    assert [(workload.image, workload.at["name"]) for workload in found] == [
        ("a/b", Spot(line=4, column=3)), ("c/d", Spot(line=9, column=1)),
    ]  # fmt: skip


def test_a_document_without_such_blocks_holds_nothing_and_is_no_mistake() -> None:
    assert read_source("# Words\n```sh\ncurl 'unclosed\n```\n", path="README.md", files=NO_FILES) == ()


def test_a_service_starts_what_its_exec_line_says() -> None:
    text = (
        '[Service]\nUser=ana\nEnvironment=IMAGE=x/y:1 "GPUS=--gpus all"\nExecStartPre=-/usr/bin/docker rm -f llm\n'
        "ExecStart=/usr/bin/podman run --name %n \\\n  --device nvidia.com/gpu=0 $EXTRA ${IMAGE} vllm serve m\n"
    )
    (found,) = read_source(text, path="llm.service", files=NO_FILES)
    assert (found.image, found.argv, found.rootless) == ("x/y:1", ("vllm", "serve", "m"), True)
    assert found.opaque == ("--name", "$EXTRA")
    assert (found.at["name"].line, found.at["cdi.0"].line) == (5, 6)


def test_a_service_may_start_the_engine_itself() -> None:
    text = "[Service]\nEnvironment=CUDA_VISIBLE_DEVICES=1\nExecStart=/opt/venv/bin/vllm serve m\n"
    (found,) = read_source(text, path="/etc/systemd/system/llm.service", files=NO_FILES)
    assert (found.form, found.env, found.at["env.CUDA_VISIBLE_DEVICES"].line) == (
        Form.PROCESS, {"CUDA_VISIBLE_DEVICES": "1"}, 2,
    )  # fmt: skip
    assert read_source("[Service]\nExecStart=/bin/true\n", path="x.service", files=NO_FILES) == ()


def test_the_engine_inside_a_shell_command_is_what_runs() -> None:
    outer = Workload(
        name="x", form=Form.RUN, container_engine=ContainerEngine.DOCKER, entrypoint=("bash",),
        argv=("-lc", "unset B; export A=2 CUDA_VISIBLE_DEVICES=0 K=$(cat key)\nexec vllm serve m -tp 2"),
        env={"A": "1", "B": "1", "C": "1"}, env_sources={"C": EnvSource.ENV_FILE, "D": EnvSource.PASSED_THROUGH},
        at={"name": Spot(line=1), "env.C": Spot(line=9), "argv.0": Spot(line=3), "argv.1": Spot(line=4)},
    )  # fmt: skip
    inner = unwrapped(outer)
    assert inner.argv == ("vllm", "serve", "m", "-tp", "2")
    assert inner.env == {"A": "2", "CUDA_VISIBLE_DEVICES": "0", "C": "1"}
    assert inner.env_sources == {"C": EnvSource.ENV_FILE, "D": EnvSource.PASSED_THROUGH, "K": EnvSource.REFERENCE}
    assert (inner.spot("env.A"), inner.spot("env.C"), inner.spot("argv.3")) == (
        Spot(line=4), Spot(line=9), Spot(line=4),
    )  # fmt: skip


@pytest.mark.parametrize(
    "argv", [("vllm", "serve", "m"), ("bash", "-c", "nvidia-smi"), ("bash", "-c", "x 'y"), ("bash",), ()]
)
def test_other_commands_are_left_as_they_are(argv: tuple[str, ...]) -> None:
    outer = Workload(name="x", form=Form.RUN, argv=argv)
    assert unwrapped(outer) == outer


@pytest.mark.parametrize(
    "text",
    [
        "A=(" * 5000,
        "((" * 200_000,
        "((\n" * 50_000 + "))",
        "$(" * 5000,
        "bash -c '" * 5000,
        'A="$A$A"\n' * 100 + "A=x\n" + 'A="$A$A"\n' * 100 + "docker run $A\n",
        "A=(x)\n" + 'A+=("${A[@]}")\n' * 60 + 'docker run "${A[@]}"\n',
        "docker run " + "-e A=1 " * 20_000,
        "${A:-" * 3000,
        "<<E " * 3000,
    ],
    ids=lambda text: text[:12],
)
@pytest.mark.parametrize("path", ["x.sh", "x.container", "x.service", "x.md"])
def test_a_text_made_to_exhaust_a_reader_is_read_or_refused(path: str, text: str) -> None:
    try:
        read_source(text, path=path, files=NO_FILES)
    except InputError as error:
        refused = error.id
    else:
        refused = ""
    assert refused in ("", "CF021", "CF022", "CF056")


@pytest.mark.parametrize(
    "text", ["// " * 3000, "// x\n" * 3000, "[" * 100_000, "services:\n" * 30_000, "{" + '"a":' * 50_000]
)
def test_a_form_is_chosen_in_one_pass(text: str) -> None:
    assert form_of(text, path="x.json") in ("", "compose")


@pytest.mark.parametrize(
    ("path", "rootless"),
    [
        ("/etc/containers/systemd/x.container", False),
        ("/usr/share/containers/systemd/x.container", False),
        ("/home/ana/.config/containers/systemd/x.container", True),
        ("/etc/containers/systemd/users/1000/x.container", True),
        ("x.container", None),
    ],
)
def test_a_quadlet_runs_as_whose_folder_it_lies_in(path: str, rootless: bool | None) -> None:
    (found,) = read_source("[Container]\nImage=x\n", path=path, files=NO_FILES)
    assert found.rootless is rootless


def test_a_unit_without_its_section_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        read_source("[Unit]\nDescription=x\n", path="x.container", files=NO_FILES)
    assert caught.value.id == "CF056"


def test_values_of_an_env_file_lose_against_the_line_itself_and_keep_their_quotes() -> None:
    class Beside:
        def text(self, path: str) -> str | None:
            return 'A="1"\nB=2\n\n# no\nC\n' if path == "x.env" else None

    (found,) = read_source("docker run -e B=3 --env-file x.env --env-file gone.env a/b\n", path="x.sh", files=Beside())
    assert found.env == {"A": '"1"', "B": "3"}
    assert found.env_sources == {"A": EnvSource.ENV_FILE, "C": EnvSource.PASSED_THROUGH}
    assert found.at["env.A"] == Spot(line=1, path="x.env")
    assert found.opaque == ("--env-file gone.env",)
