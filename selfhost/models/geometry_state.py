"""The fixed-size state of a recurrent layer, as vLLM's get_mamba_state_shape_from_config lays it out by family."""

from collections.abc import Callable

from selfhost.models.architectures import Architecture
from selfhost.models.fields import Fields
from selfhost.shapes.geometry import Recurrence, State
from selfhost.shapes.precision import VALUE_BYTES, short_name

_COMPUTED_BYTES = 2
"""vLLM keeps a state as it computes, unless the model asks for more (mamba_ssm_cache_dtype auto)."""


def state_of(text: Fields, row: Architecture, *, hidden: int, heads: int) -> State | None:
    """None when the config does not say the sizes, or the layers are of no known kind."""
    kind = row.state or _by_fields(text)
    if kind is None:
        return None
    state = _READERS[kind](text, hidden, heads, row.ssm_bytes or _ssm_bytes(text))
    whole = state.head_dim > 0 and (kind is Recurrence.CONV or state.heads > 0)
    return state if whole and state.kernel > 0 else None


def _by_fields(text: Fields) -> Recurrence | None:
    """Of a model_type in no table."""
    signs = {
        "linear_num_value_heads": Recurrence.GDN,
        "linear_attn_config": Recurrence.KDA,
        "mamba_n_groups": Recurrence.MAMBA2,
        "ssm_state_size": Recurrence.MAMBA2,
        "mamba_d_state": Recurrence.MAMBA1,
        "conv_L_cache": Recurrence.CONV,
        "attn_type_list": Recurrence.LIGHTNING,
    }
    return next((kind for name, kind in signs.items() if text.raw.get(name) is not None), None)


def _ssm_bytes(text: Fields) -> int:
    named = text.raw.get("mamba_ssm_dtype") or text.raw.get("mamba_ssm_cache_dtype")
    return int(VALUE_BYTES.get(short_name(str(named)), _COMPUTED_BYTES)) if named else _COMPUTED_BYTES


def _gdn(text: Fields, _hidden: int, _heads: int, ssm_bytes: int) -> State:
    return State(
        kind=Recurrence.GDN,
        heads=text.number("linear_num_value_heads"),
        head_dim=text.number("linear_value_head_dim"),
        state=text.number("linear_key_head_dim"),
        key_heads=text.number("linear_num_key_heads"),
        kernel=text.number("linear_conv_kernel_dim") or 4,
        ssm_bytes=ssm_bytes,
    )


def _kda(text: Fields, _hidden: int, _heads: int, ssm_bytes: int) -> State:
    inner = text.inner("linear_attn_config")
    heads = inner.number("num_heads") or text.number("linear_num_heads")
    dim = inner.number("head_dim") or text.number("linear_head_dim")
    kernel = inner.number("short_conv_kernel_size") or text.number("linear_conv_kernel_dim")
    return State(
        kind=Recurrence.KDA, heads=heads, head_dim=dim, state=dim, key_heads=heads, kernel=kernel or 4,
        ssm_bytes=ssm_bytes,
    )  # fmt: skip


def _mamba2(text: Fields, hidden: int, _heads: int, ssm_bytes: int) -> State:
    inner = text.number("mamba_d_ssm") or (text.number("mamba_expand", "expand") or 2) * hidden
    heads = text.number("mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads")
    dim = text.number("mamba_head_dim", "mamba_headdim", "mamba_d_head") or (inner // heads if heads else 0)
    if text.model_type == "mamba2":
        dim = text.number("head_dim") or dim
    return State(
        kind=Recurrence.MAMBA2,
        heads=heads,
        head_dim=dim,
        state=text.number("ssm_state_size", "mamba_d_state", "state_size"),
        groups=text.number("mamba_n_groups", "mamba_ngroups", "n_groups") or 1,
        kernel=text.number("conv_kernel", "mamba_d_conv") or 4,
        ssm_bytes=ssm_bytes,
    )


def _mamba1(text: Fields, hidden: int, _heads: int, ssm_bytes: int) -> State:
    """Every channel is a head of width 1."""
    expanded = (text.number("mamba_expand", "expand") or 2) * hidden
    inner = expanded if text.raw.get("mamba_d_state") is not None else text.number("intermediate_size") or expanded
    return State(
        kind=Recurrence.MAMBA1,
        heads=inner,
        head_dim=1,
        state=text.number("mamba_d_state", "state_size") or 16,
        kernel=text.number("mamba_d_conv", "conv_kernel") or 4,
        ssm_bytes=ssm_bytes,
    )


def _conv(text: Fields, hidden: int, _heads: int, ssm_bytes: int) -> State:
    width = text.number("conv_dim") or hidden
    return State(
        kind=Recurrence.CONV, heads=0, head_dim=width, kernel=text.number("conv_L_cache") or 3, ssm_bytes=ssm_bytes
    )


def _lightning(text: Fields, hidden: int, heads: int, ssm_bytes: int) -> State:
    dim = text.number("head_dim") or (hidden // heads if heads else 0)
    return State(
        kind=Recurrence.LIGHTNING, heads=heads, head_dim=dim, state=dim, key_heads=heads, kernel=1, ssm_bytes=ssm_bytes
    )


_READERS: dict[Recurrence, Callable[[Fields, int, int, int], State]] = {
    Recurrence.GDN: _gdn,
    Recurrence.KDA: _kda,
    Recurrence.MAMBA2: _mamba2,
    Recurrence.MAMBA1: _mamba1,
    Recurrence.CONV: _conv,
    Recurrence.LIGHTNING: _lightning,
}
