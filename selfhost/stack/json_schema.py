"""The JSON Schema of selfhost.yaml, for editors: what schema.py takes, its short forms included."""

import json
from typing import Any, Final

_SHORT_NUMBER: Final = {"type": "string", "pattern": r"^\d+(\.\d+)?[kKmM]$"}
_WORD_OR_NUMBER: Final = {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 0}]}
_ALSO: Final[dict[tuple[str, str], tuple[dict[str, Any], ...]]] = {
    ("Service", "context"): (_SHORT_NUMBER,),
    ("Service", "concurrency"): (_SHORT_NUMBER,),
    ("Service", "context_ceiling"): (_SHORT_NUMBER,),
    ("Service", "reasoning"): (
        {"enum": ["on", "off", True, False]},
        {"type": "string", "pattern": r"^(budget=\d+(\.\d+)?[kKmM]?|effort=(low|medium|high))$"},
    ),
    ("Service", "precision"): ({"type": "string"},),
    ("Service", "kv_skip_layers"): (_WORD_OR_NUMBER,),
    ("Service", "devices"): (_WORD_OR_NUMBER,),
    ("Service", "media_domains"): ({"type": "string"},),
    ("Kubernetes", "image_pull_secrets"): ({"type": "string"},),
    ("Service", "engine_args"): ({"type": "object", "description": "Flags and their values; true is a switch."},),
    ("Reasoning", "budget_tokens"): (_SHORT_NUMBER,),
    ("Envelope", "isl"): (_SHORT_NUMBER,),
    ("Envelope", "osl"): (_SHORT_NUMBER,),
    ("Envelope", "concurrency"): (_SHORT_NUMBER,),
}
"""What the readers of spellings.py take beside the form itself."""
_ELEMENTS: Final = ("devices", "kv_skip_layers")
"""Lists whose elements may be numbers."""
_SCALAR: Final = {"type": ["string", "number", "boolean"]}


def json_schema() -> dict[str, Any]:
    """Draft 2020-12."""
    from selfhost.stack.schema import SCHEMA_URI, SelfhostYaml

    schema: dict[str, Any] = json.loads(json.dumps(SelfhostYaml.model_json_schema()))
    forms = schema.pop("$defs")
    for name, form in (("", schema), *forms.items()):
        form.pop("title", None)
        form["properties"] = {key: _property(name, key, value) for key, value in form["properties"].items()}
    schema["properties"]["services"]["propertyNames"] = {"pattern": "^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$"}
    schema["patternProperties"] = {"^x-": {}}
    return {"$schema": SCHEMA_URI, "title": "selfhost.yaml, version 1", **schema, "$defs": forms}


def to_text() -> str:
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def _property(form: str, key: str, found: dict[str, Any]) -> dict[str, Any]:
    shown = {name: found[name] for name in ("description", "examples") if name in found}
    rest = {name: value for name, value in found.items() if name not in (*shown, "title", "default", "anyOf")}
    kinds = [kind for kind in found.get("anyOf", [rest]) if kind != {"type": "null"}]
    for kind in kinds:
        if key in _ELEMENTS:
            kind["items"] = _WORD_OR_NUMBER
        if key == "engine_args":
            kind["items"] = _SCALAR
        if key == "engine_env":
            kind["additionalProperties"] = _SCALAR
    kinds += _ALSO.get((form, key), ())
    return {**shown, **(kinds[0] if len(kinds) == 1 else {"anyOf": kinds})}
