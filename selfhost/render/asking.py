"""The request that a README shows: it asks as every client must, to get the mode that was planned."""

import json

from selfhost.shapes.plan import Plan

_QUESTION = "What is the capital of France?"


def asking(plan: Plan) -> dict[str, str]:
    """`body` of the request, and `extras`: the fields without which the server does not keep the mode."""
    extras = plan.reasoning.client_extras
    question = {"model": plan.model.served_name, "messages": [{"role": "user", "content": _QUESTION}]}
    needed = plan.reasoning.unsent != "served" and extras
    return {"body": json.dumps(question | extras), "extras": json.dumps(extras) if needed else ""}
