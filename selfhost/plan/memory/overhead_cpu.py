"""What vLLM takes on the CPU beside weights and KV cache."""

from selfhost.plan.memory.batch import batch_tokens, max_seqs
from selfhost.plan.memory.figures import figure
from selfhost.plan.memory.overhead import Overhead
from selfhost.plan.memory.question import Question
from selfhost.shapes.units import GIB


def cpu_overhead(question: Question) -> Overhead:
    """The engine's processes, one batch of activations and the logits of one step, all in FP32."""
    shape = question.geometry
    base = figure("cpu", "engine_gib") + (0.0 if question.eager else figure("cpu", "compiler_gib"))
    batch = batch_tokens(question, (99,)) * shape.hidden * 4 * figure("cpu", "intermediates")
    logits = max_seqs(question, (99,)) * shape.vocab * 4 * figure("cpu", "logit_copies")
    return Overhead(activation_peak=int(batch + logits), non_torch=int(base * GIB), graphs=0, subtracted=True)
