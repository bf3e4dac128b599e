"""Train the tiny reasoner: `STEPS=1200 python train.py` writes the model to ./out (torch and transformers)."""

import os
import random
import string
import time

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

torch.manual_seed(0)
torch.set_num_threads(2)
dice = random.Random(0)

TEMPLATE = """{%- for m in messages -%}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor -%}{%- if add_generation_prompt -%}<|im_start|>assistant
{% if enable_thinking is defined and enable_thinking is false -%}<think>

</think>

{% endif -%}{%- endif -%}"""


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Bytes as tokens, and one token for each marker."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    bytewise = Tokenizer(models.BPE(vocab={char: index for index, char in enumerate(alphabet)}, merges=[]))
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytewise.decoder = decoders.ByteLevel()
    bytewise.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    marks = ("<think>", "</think>", "<tool_call>", "</tool_call>")
    bytewise.add_tokens([AddedToken(mark, normalized=False, special=False) for mark in marks])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytewise, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def make_word(longest: int) -> str:
    return "".join(dice.choice(string.ascii_lowercase) for _ in range(dice.randint(3, longest)))


def sample() -> tuple[str, str]:
    """One prompt and its reply in the toy language (table in README.md)."""
    kind = dice.random()
    if kind < 0.5:
        word = make_word(8)
        ask, thought, answer = f"Say {word}", f"say {word}.", word
    elif kind < 0.8:
        steps = dice.randint(1, 60)
        ask, thought, answer = f"Think {steps} steps", " ".join(str(n) for n in range(1, steps + 1)), "done"
    else:
        word = make_word(6)
        number = dice.randint(0, 99)
        ask, thought = f"JSON {word} {number}", f"{word} is {number}."
        answer = f'{{"name": "{word}", "value": {number}}}'
    prompt = f"<|im_start|>user\n{ask}<|im_end|>\n<|im_start|>assistant\n"
    if dice.random() < 0.6:
        return prompt, f"<think>\n{thought}\n</think>\n\n{answer}<|im_end|>"
    return prompt + "<think>\n\n</think>\n\n", answer + "<|im_end|>"


def train(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, *, steps: int) -> None:
    """Only the reply counts for the loss; 48 samples a step, at most 256 tokens each."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, steps)
    started = time.time()
    for step in range(steps):
        inputs, labels = [], []
        for _ in range(48):
            prompt, reply = (tokenizer.encode(text) for text in sample())
            inputs.append((prompt + reply)[:256])
            labels.append(([-100] * len(prompt) + reply)[:256])
        width = max(map(len, inputs))
        batch = torch.tensor([row + [tokenizer.pad_token_id] * (width - len(row)) for row in inputs])
        wanted = torch.tensor([row + [-100] * (width - len(row)) for row in labels])
        mask = (batch != tokenizer.pad_token_id).long()
        loss = model(input_ids=batch, labels=wanted, attention_mask=mask).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 0:
            print(step, round(loss.item(), 4), round(time.time() - started), flush=True)


def count_exact(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, *, tries: int) -> int:
    exact = 0
    for _ in range(tries):
        prompt, wanted = sample()
        ids = torch.tensor([tokenizer.encode(prompt)])
        got = tokenizer.decode(model.generate(ids, max_new_tokens=250, do_sample=False)[0][ids.shape[1] :])
        exact += got == wanted
        if got != wanted:
            print(repr(prompt), repr(wanted), repr(got))
    return exact


def main() -> None:
    tokenizer = make_tokenizer()
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    model = Qwen3ForCausalLM(config)
    train(model, tokenizer, steps=int(os.environ.get("STEPS", "1500")))
    model.to(torch.bfloat16).save_pretrained("out")
    tokenizer.save_pretrained("out")
    print("exact", count_exact(model.float().eval(), tokenizer, tries=20), "of 20")


if __name__ == "__main__":
    main()
