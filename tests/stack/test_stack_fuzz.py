"""Whatever stands in the file: a stack or an error that a person can act on, never anything else."""

import json

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from selfhost.core.errors import InputError
from selfhost.stack.json_schema import json_schema
from selfhost.stack.load import Stack, load

KEYS = ["version", "defaults", "services", "x-a", *json_schema()["$defs"]["Service"]["properties"]]
INNER = ["mode", "budget_tokens", "effort", "weights", "kv", "isl", "osl", "concurrency", "ttft", "p", "s", "cache"]
WORDS = ["on", "off", "budget", "effort", "cpu", "auto", "0", "GPU-11112222", "32k", "docker", "vllm", "low", "fp8"]
scalars = st.one_of(
    st.sampled_from(WORDS), st.none(), st.booleans(), st.integers(-2, 70_000), st.integers(), st.text(max_size=8),
    st.floats(allow_nan=True), st.floats(0, 1),
)  # fmt: skip
keys = st.one_of(st.sampled_from(KEYS + INNER), st.text(max_size=5))
trees = st.recursive(
    scalars, lambda below: st.lists(below, max_size=4) | st.dictionaries(keys, below, max_size=5), max_leaves=12
)
GOOD = {key: value["examples"] for key, value in json_schema()["$defs"]["Service"]["properties"].items()}
likely = st.fixed_dictionaries(
    {"model": st.just("m")},
    optional={
        key: st.sampled_from([*examples, *examples, *examples, 7, None])
        for key, examples in GOOD.items()
        if key != "model"
    },
)
services = st.dictionaries(st.sampled_from(KEYS[4:]), trees, max_size=8) | likely
files = st.fixed_dictionaries(
    {
        "version": st.sampled_from([1, 1, 1, 2, "1", True]),
        "services": st.dictionaries(st.text("ab-", max_size=3) | st.just("a"), services, min_size=1, max_size=3),
    },
    optional={"defaults": services, "x-a": trees},
)  # fmt: skip
calm = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def loaded(text):
    stack, error = attempted(text)
    if error is None:
        assert isinstance(stack, Stack)
        assert stack.services
        assert all(one.model and one.name for one in stack.services)
    else:
        assert error.what
        assert error.id.startswith("CF")
        assert error.place is not None


def attempted(text):
    try:
        return load(text, path="selfhost.yaml"), None
    except InputError as error:
        return None, error


@calm
@given(files | trees)
def test_any_tree_is_a_stack_or_an_error(tree):
    loaded(yaml.safe_dump(tree, allow_unicode=True))


@calm
@given(files)
def test_any_json_is_a_stack_or_an_error(tree):
    loaded(json.dumps(tree))


@calm
@given(st.text(max_size=60) | st.text("version: 1\nsa{}[]&*<-!|>'\"", max_size=60))
def test_any_text_is_a_stack_or_an_error(text):
    loaded(text)
    loaded("version: 1\nservices:\n  a:\n    model: m\n    " + text)
