"""What an engine will do with the memory of one rank: the one entry of this folder."""

from selfhost.plan.memory.question import Answer, Question
from selfhost.plan.memory.start_sglang import start_sglang
from selfhost.plan.memory.start_vllm import start_vllm


def predict(question: Question) -> Answer:
    """Computed from the question alone; no fact is looked up anywhere."""
    return start_sglang(question) if question.engine == "sglang" else start_vllm(question)
