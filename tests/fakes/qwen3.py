"""Qwen3-4B as it lies in a hub's cache, with its real configuration and the headers of its weights; the numbers are
holes in the file, so its 8 GB take no disk. For engines that do not read them.

Shapes and configuration: https://huggingface.co/Qwen/Qwen3-4B/blob/main/config.json
"""

import json
from collections.abc import Iterator
from pathlib import Path

REPO = "Qwen/Qwen3-4B"
REVISION = "1cfa9a7208912126459214e8b04321603b3df60c"
CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "attention_bias": False,
    "bos_token_id": 151643,
    "eos_token_id": 151645,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 2560,
    "intermediate_size": 9728,
    "max_position_embeddings": 40960,
    "max_window_layers": 36,
    "model_type": "qwen3",
    "num_attention_heads": 32,
    "num_hidden_layers": 36,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000,
    "sliding_window": None,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "use_sliding_window": False,
    "vocab_size": 151936,
}
GENERATION = {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "eos_token_id": [151645, 151643]}
TOKENIZER = {
    "model_max_length": 131072,
    "chat_template": "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' + message.content + "
    "'<|im_end|>\\n' }}{%- endfor %}{{- '<|im_start|>assistant\\n' }}{%- if enable_thinking is defined and "
    "enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}",
}


def in_hub_cache(home: Path) -> Path:
    """`home` as HF_HOME; the snapshot's folder."""
    repository = home / "hub" / "models--Qwen--Qwen3-4B"
    snapshot, blobs = repository / "snapshots" / REVISION, repository / "blobs"
    for folder in (snapshot, blobs, repository / "refs"):
        folder.mkdir(parents=True)
    (repository / "refs" / "main").write_text(REVISION)
    texts = {"config.json": CONFIG, "generation_config.json": GENERATION, "tokenizer_config.json": TOKENIZER}
    texts["tokenizer.json"] = {"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": []}}
    for number, (name, content) in enumerate(texts.items()):
        (blobs / f"{number:040x}").write_text(json.dumps(content))
        (snapshot / name).symlink_to(f"../../blobs/{number:040x}")
    _weights(blobs / f"{9:064x}")
    (snapshot / "model.safetensors").symlink_to(f"../../blobs/{9:064x}")
    return snapshot


def _weights(path: Path) -> None:
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in _tensors():
        size = 2
        for length in shape:
            size *= length
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)


def _tensors() -> Iterator[tuple[str, tuple[int, ...]]]:
    hidden, inner, head, heads, kv_heads = 2560, 9728, 128, 32, 8
    yield "model.embed_tokens.weight", (151936, hidden)
    for number in range(36):
        layer = f"model.layers.{number}"
        yield f"{layer}.self_attn.q_proj.weight", (heads * head, hidden)
        yield f"{layer}.self_attn.k_proj.weight", (kv_heads * head, hidden)
        yield f"{layer}.self_attn.v_proj.weight", (kv_heads * head, hidden)
        yield f"{layer}.self_attn.o_proj.weight", (hidden, heads * head)
        yield f"{layer}.self_attn.q_norm.weight", (head,)
        yield f"{layer}.self_attn.k_norm.weight", (head,)
        yield f"{layer}.mlp.gate_proj.weight", (inner, hidden)
        yield f"{layer}.mlp.up_proj.weight", (inner, hidden)
        yield f"{layer}.mlp.down_proj.weight", (hidden, inner)
        yield f"{layer}.input_layernorm.weight", (hidden,)
        yield f"{layer}.post_attention_layernorm.weight", (hidden,)
    yield "model.norm.weight", (hidden,)
