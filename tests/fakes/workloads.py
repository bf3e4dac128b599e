"""Workloads of every kind that a target can say, with texts that other formats damage."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from selfhost.shapes.workload import (
    CdiName,
    ContainerEngine,
    DevicePath,
    DeviceRequest,
    Health,
    Mount,
    Ulimit,
    Workload,
)  # fmt: skip

ODD = [
    "yes", "no", "on", "~", "null", "0123", "12:30:45", "1e5", ".5", "0x10", "pa$$word", "$HOME", "${X:-y}", "$(id)",
    '{"enable_thinking": false}', "🦀", "\x85", "\x7f", "a\u2028b", "%h", "%%", "it's", 'a "b"', "a\nb", "\r\n",
    "\t", " a ", "a\\", "\\n", "`id`", "a # b", "#", "- a", "a: b", "[a, b]", "{a}", "&a", "*a", "!a", "|", ">",
    "@a", "=", "=a", ";", "-", "--", "---", "--flag=a:b", "a,b", "a=b,c", "é",
]  # fmt: skip
TEXT = st.sampled_from(ODD) | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
WORD = TEXT.filter(bool)
NAME = st.from_regex(r"[a-z][a-z0-9-]{0,10}[a-z0-9]", fullmatch=True)
VARIABLE = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
PATH = st.sampled_from(
    ["/srv/x", "/srv/my models/it's", "/a$b/%h", '/q"x', "/ü🦀", "/a,b", "/models--A--B/snapshots/0123"]
)
LABEL = st.from_regex(r"[a-z][a-z0-9.-]{0,10}[a-z]", fullmatch=True)

_SECONDS = st.integers(1, 90_000).map(float)


def _mounts() -> st.SearchStrategy[Mount]:
    bind = st.builds(Mount, source=PATH, target=PATH, read_only=st.booleans())
    volume = st.builds(Mount, source=NAME, target=PATH, kind=st.just("volume"))
    sizes = st.sampled_from([None, 1, 2**30])
    return bind | volume | st.builds(Mount, target=st.just("/tmp"), kind=st.just("tmpfs"), size_bytes=sizes)


def _some(*values: Any, most: int = 2) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(st.sampled_from(values), max_size=most, unique=True).map(tuple)


def _requests() -> st.SearchStrategy[tuple[DeviceRequest, ...]]:
    ids = st.lists(st.sampled_from(["GPU-1", "MIG-a/b", "0"]), min_size=1, max_size=3, unique=True).map(tuple)
    one = st.builds(DeviceRequest, driver=st.sampled_from(["", "nvidia"]), ids=ids) | st.builds(
        DeviceRequest, driver=st.sampled_from(["", "nvidia"]), count=st.sampled_from([-1, 1, 2])
    )
    return st.lists(one, max_size=2).map(tuple)


def _health() -> st.SearchStrategy[Health]:
    return st.builds(
        Health,
        test=st.lists(WORD, min_size=1, max_size=3).map(lambda found: ("python3", *found)),
        interval_s=_SECONDS,
        timeout_s=_SECONDS,
        retries=st.integers(1, 9),
        start_period_s=_SECONDS,
    )


def workloads(target: str) -> st.SearchStrategy[Workload]:
    """Those that `target` has words for."""
    docker, quadlet = target in ("compose", "docker"), target == "quadlet"
    words = st.lists(WORD if quadlet else TEXT, max_size=6).map(tuple)
    restart = st.sampled_from(["no", "on-failure:3", "unless-stopped"] + ([] if quadlet else ["always", "on-failure"]))
    facts: dict[str, Any] = {
        "name": NAME.map("selfhost-{}".format),
        "argv": words.map(lambda found: ("/model", *found)),
        "env": st.dictionaries(VARIABLE, TEXT, max_size=4),
        "env_files": st.lists(PATH, max_size=1).map(tuple),
        "image": st.sampled_from(["vllm/vllm-openai:v0.33.0", "localhost:5000/x@sha256:" + "0" * 64, "alpine"]),
        "container_engine": st.just(ContainerEngine.DOCKER if docker else ContainerEngine.PODMAN),
        "entrypoint": st.just(None) if quadlet else st.sampled_from([None, ("sglang",), ()]),
        "cdi": _some(*(CdiName(kind="nvidia.com/gpu", name=name) for name in ("0", "all", "GPU-a"))),
        "devices": _some(DevicePath(source="/dev/kfd"), DevicePath(source="/dev/a", target="/dev/b")),
        "requests": _requests() if docker else st.just(()),
        "runtime": st.sampled_from(["", "nvidia"]) if docker else st.just(""),
        "user": st.sampled_from(["", "0:0", "1000:1000", "1000", "nobody"]),
        "group_add": _some("993", "keep-groups"),
        "cap_drop": st.sampled_from([(), ("ALL",)]),
        "cap_add": st.sampled_from([(), ("SYS_PTRACE", "SYS_NICE")]),
        "security_opt": _some("no-new-privileges:true", "label=disable", "seccomp=unconfined", "seccomp=/a b", most=3),
        "privileged": st.booleans(),
        "read_only": st.booleans(),
        "init": st.booleans(),
        "network": NAME.map("selfhost-{}".format) | st.sampled_from(["", "host", "none"]),
        "ipc": st.sampled_from(["", "host", "private"]),
        "pid": st.sampled_from(["", "host"]),
        "userns": st.sampled_from(["", "host"]),
        "shm_bytes": st.sampled_from([None, 64 * 2**20, 2**30, 12345]),
        "mounts": st.lists(_mounts(), max_size=3, unique_by=lambda mount: mount.target).map(tuple),
        "ports": st.sampled_from([(), ("127.0.0.1:8000:8000",), ("[::1]:22:22", "80:80")]),
        "restart": restart,
        "stop_grace_s": st.none() | _SECONDS,
        "health": st.none() | _health(),
        "labels": st.dictionaries(LABEL, TEXT, max_size=3),
        "log_driver": st.sampled_from(["", "json-file", "journald"]),
        "log_options": st.dictionaries(st.sampled_from(["max-size", "tag"]), st.sampled_from(["64m", "{{.Name}}"])),
        "ulimits": _some(Ulimit(name="memlock", soft=-1, hard=-1), Ulimit(name="nofile", soft=1, hard=2)),
        "device_cgroup_rules": st.sampled_from([(), ("c 226:* rmw",)]),
    }  # fmt: skip
    return st.builds(Workload, **facts)


def without_places(workload: Workload) -> Workload:
    """What is compared: where a thing was read, and how its request was spelled, is no part of what runs."""
    return replace(
        workload,
        path="",
        at={},
        form=Workload(name="", argv=()).form,
        cdi=tuple(replace(one, key="") for one in workload.cdi),
        devices=tuple(replace(one, key="") for one in workload.devices),
        mounts=tuple(replace(one, key="") for one in workload.mounts),
        requests=tuple(replace(one, key="", spelling="") for one in workload.requests),
    )
