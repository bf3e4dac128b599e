"""SM110: the answers are a model's, not noise."""

import re

from selfhost.smoke.capability import NO_TEMPLATE, Capability
from selfhost.smoke.check import Failed, Passed, Undecided, Verdict, check
from selfhost.smoke.excerpt import excerpt
from selfhost.smoke.likelihood import Comparison, compare
from selfhost.smoke.probe import Probe, Unanswered
from selfhost.smoke.probes_file import PROBES_FILE, brought
from selfhost.smoke.prose import Material, Question, plain

SHORT_TOKENS = 32

# Measured with this prose on vLLM's CPU backend. Healthy SmolLM2-135M, one of the smallest chat models there are: -3.4
# nats per token, 3.9 above the same words shuffled, 6 of 8 questions. One o_proj of 30 permuted: -6.5 and 1.7, 0 of 8;
# ten of them -9.1 and 1.1, 0 of 8. Larger models do better on all three.
MADE_FOR_PROSE = 2.5
"""Characters per token of English; a byte-level vocabulary has about 1, vocabularies trained on English above 4."""
PROSE_LEAST_MEAN = -5.5
PROSE_LEAST_GAIN = 2.5
QUESTIONS_ENOUGH = 3
QUESTIONS_NOISE = 1
OWN_LEAST_GAIN = 0.5
OWN_SHARE = 0.75


@check("SM110", "the answer is not garbage", group="answers", needs=("SM002",), budget_s=120)
def not_garbage(probe: Probe, capability: Capability) -> Verdict:
    """Prose likelier than its words shuffled, and plain questions answered.

    A model that was not made for prose is judged by the probes it brings; without them nothing can be said.
    """
    own = brought(probe.endpoint.model_dir)
    if own is not None:
        return _judge_own(own, probe, capability)
    material = plain()
    try:
        likelihood = compare(probe, material.pairs)
    except Unanswered as error:
        if error.status not in (400, 404, 405, 422):
            raise
        return _judge_questions(material.questions, probe, capability, because=error.what)
    if likelihood.characters_per_token < MADE_FOR_PROSE:
        return Undecided(
            reason=f"the vocabulary is not made for prose ({likelihood.characters_per_token:.1f} characters a token), "
            f"and there is no {PROBES_FILE} beside the model's config"
        )
    return _judge_prose(likelihood, material, probe, capability)


def _judge_prose(likelihood: Comparison, material: Material, probe: Probe, capability: Capability) -> Verdict:
    right, heard = _ask_all(material.questions, probe, capability)
    asked = len(heard)
    asking = f"{right} of {asked} plain questions answered" if capability.chats else f"no questions: {NO_TEMPLATE}"
    seen = f"prose {likelihood}; {asking}"
    if likelihood.mean < PROSE_LEAST_MEAN or likelihood.gain < PROSE_LEAST_GAIN:
        return _garbage(
            f"the model does not know plain prose: {likelihood}",
            f"A healthy model has at least {PROSE_LEAST_MEAN:.1f} and {PROSE_LEAST_GAIN:.1f} here. Its weights are "
            "damaged, mixed up or loaded wrongly.",
            heard,
            probe,
        )
    if asked >= len(material.questions) // 2 and right <= QUESTIONS_NOISE:
        return _garbage(
            f"the model knows prose and answers {right} of {asked} plain questions",
            "Text it was trained on is likely to it, its chat answers are not to the point: a wrong chat template, or "
            "weights that are damaged in places.",
            heard,
            probe,
        )
    if right < QUESTIONS_ENOUGH and capability.chats:
        return Undecided(reason=seen)
    return Passed(note=seen)


def _judge_questions(questions: tuple[Question, ...], probe: Probe, capability: Capability, *, because: str) -> Verdict:
    """Without likelihoods only a clear result counts."""
    right, heard = _ask_all(questions, probe, capability)
    if not capability.chats:
        return Undecided(reason=f"no likelihood ({because}), and no questions: {NO_TEMPLATE}")
    seen = f"{right} of {len(heard)} plain questions answered; no likelihood ({because})"
    if right * 2 >= len(questions):
        return Passed(note=seen)
    if right == 0 and len(heard) == len(questions):
        return _garbage("none of the plain questions is answered", "No likelihood was to be had.", heard, probe)
    return Undecided(reason=seen)


def _judge_own(material: Material, probe: Probe, capability: Capability) -> Verdict:
    notes, undecided = [], ""
    if material.pairs:
        try:
            likelihood = compare(probe, material.pairs)
        except Unanswered as error:
            if error.status not in (400, 404, 405, 422):
                raise
            undecided = error.what
        else:
            notes.append(f"{likelihood}")
            if likelihood.least_gain < OWN_LEAST_GAIN:
                return _garbage(
                    f"a text that the model brought as its own is {likelihood.least_gain:.2f} nats per token above its "
                    "words shuffled",
                    f"{PROBES_FILE} lies beside the model's config; a healthy model has at least {OWN_LEAST_GAIN}.",
                    (),
                    probe,
                )
    right, heard = _ask_all(material.questions, probe, capability)
    if heard and right < OWN_SHARE * len(heard):
        return _garbage(
            f"{right} of {len(heard)} questions that the model brought are answered",
            f"{PROBES_FILE} beside the model's config says what a healthy one answers.",
            heard,
            probe,
        )
    if heard:
        notes.append(f"{right} of {len(heard)} questions")
    if not notes or (undecided and not heard):
        return Undecided(
            reason=undecided
            or (not capability.chats and NO_TEMPLATE)
            or "no answer ended within its room, so none could be judged"
        )
    return Passed(note=f"by its own probes: {'; '.join(notes)}")


def _ask_all(
    questions: tuple[Question, ...], probe: Probe, capability: Capability
) -> tuple[int, tuple[tuple[str, str], ...]]:
    """How many are right, and each question with its answer. Thinking that was cut is not an answer and left out."""
    right, heard = 0, []
    if not capability.chats:
        return 0, ()
    fields = capability.answer_fields(short=SHORT_TOKENS)
    for question in questions:
        answer = probe.chat(question.ask, **fields)
        if answer.finish == "length" and answer.reasoning:
            continue
        right += any(holds(answer.said, word) for word in question.expect)
        heard.append((question.ask, answer.said))
    return right, tuple(heard)


def holds(text: str, word: str) -> bool:
    """Whether `word` stands in `text` as a word of its own."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text.lower()) is not None


def _garbage(what: str, why: str, heard: tuple[tuple[str, str], ...], probe: Probe) -> Failed:
    log = f"\nselfhost logs {probe.endpoint.name}" if probe.endpoint.runtime else ""
    return Failed(
        what=what,
        why=why,
        evidence="\n".join(f"{ask} → {excerpt(said)}" for ask, said in heard[:3]),
        fix=(
            "compare the weights with their source, byte by byte, and fetch them again where they differ",
            f"look for warnings about weights, quantization or the chat template in the engine's log{log}",
        ),
    )
