"""The published schema and the page about selfhost.yaml say what the reader takes."""

import json
import re
from pathlib import Path

import pytest

from selfhost.stack.json_schema import json_schema
from selfhost.stack.load import load

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "selfhost-yaml.md"
SCHEMA = DOCS / "reference" / "selfhost-yaml.schema.json"


def test_the_published_schema_is_that_of_the_reader():
    """After a change of schema.py: selfhost init --schema > docs/reference/selfhost-yaml.schema.json."""
    assert json.loads(SCHEMA.read_text()) == json_schema()


def test_every_key_stands_on_the_page():
    text = PAGE.read_text()
    forms = [json_schema(), *json_schema()["$defs"].values()]
    keys = {key for form in forms for key in form["properties"]}
    assert {"version", "model", "budget_tokens", "price_per_hour"} <= keys
    fenced = re.compile(r"```.*?```", re.DOTALL)
    quoted = [*fenced.findall(text), *re.findall(r"`([^`\n]+)`", fenced.sub("", text))]
    named = set(re.findall(r"[a-z_]+", " ".join(quoted)))
    assert keys - named == set()


def test_the_example_on_the_page_loads():
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    chat, small = load(example, path="selfhost.yaml").services
    assert (chat.port, chat.share, str(chat.reasoning), str(small.reasoning)) == (8001, 0.6, "budget=2048", "off")
    schema = re.search(r"\$schema=(\S+)", example)[1]
    assert (DOCS / schema).is_file()


@pytest.mark.parametrize("form", ["Service", "Envelope", "Precision"])
def test_every_example_of_the_schema_is_taken(form):
    for key, value in json_schema()["$defs"][form]["properties"].items():
        for example in value.get("examples", []):
            said = {"model": "m", key: example}
            wrapped = said if form == "Service" else {"model": "m", form.lower(): {key: example}}
            load(json.dumps({"version": 1, "services": {"a": wrapped}}), path="selfhost.yaml")
