"""What is written reads back as what was meant: the law, for every target that starts a container."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selfhost.core.errors import InputError
from selfhost.deploy.read_back import read_bundle
from selfhost.render.head import Head
from selfhost.render.targets import files_of
from selfhost.shapes.workload import DeviceRequest, Workload
from tests.fakes.workloads import TEXT, without_places, workloads

HEAD = Head(title='it: "x" on vllm\n0.33.0 %h', digest="0" * 64)
TARGETS = ("compose", "docker", "podman", "quadlet")


def back(target: str, workload: Workload, reasons: dict[str, str]) -> Workload:
    files, _ = files_of(target, workload, HEAD, reasons)
    return read_bundle(target, files)


def reasons() -> st.SearchStrategy[dict[str, str]]:
    keys = [
        "image",
        "env",
        "mounts.0",
        "health",
        "labels",
        "cap_drop",
        "security_opt.0",
        "argv./model",
        "network",
        "init",
    ]
    return st.dictionaries(st.sampled_from(keys), TEXT | st.just("because " * 40), max_size=4)


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_what_is_rendered_reads_back_as_planned(target: str, data: st.DataObject) -> None:
    workload = data.draw(workloads(target))
    assert without_places(back(target, workload, data.draw(reasons()))) == without_places(workload)


@pytest.mark.parametrize(
    ("target", "changes", "said"),
    [
        ("quadlet", {"argv": ("/model", "")}, "an empty argument"),
        ("quadlet", {"requests": (DeviceRequest(count=-1),)}, "a device request of Docker's"),
        ("quadlet", {"restart": "always"}, "`always`"),
        ("compose", {"argv": ("a\0b",)}, "NUL"),
        ("docker", {"entrypoint": ("a", "b")}, "an entrypoint of several words"),
        ("docker", {"requests": (DeviceRequest(),)}, "a device request"),
        ("compose", {"opaque": ("$EXTRA",)}, "$EXTRA"),
    ],
)
def test_what_a_target_cannot_say_is_refused_by_name(target: str, changes: dict[str, object], said: str) -> None:
    workload = Workload(**{"name": "selfhost-it", "argv": ("/model",), "image": "x", **changes})  # type: ignore[arg-type]
    with pytest.raises(InputError, match="cannot be written") as error:
        files_of(target, workload, HEAD, {})
    assert said in error.value.what
    assert error.value.id == "CF085"
