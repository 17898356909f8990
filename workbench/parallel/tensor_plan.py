"""Which linear layers are divided among ranks: by the user's plan, or found by their form."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from torch import nn

from workbench.errors import SettingError

_FEED_FORWARD = (
    *((("linear1",), "linear2"), (("fc1",), "fc2"), (("lin1",), "lin2"), (("c_fc",), "c_proj")),
    *((("gate_proj", "up_proj"), "down_proj"), (("up_proj",), "down_proj")),
    *((("w1", "w3"), "w2"), (("gate", "up"), "down"), (("up",), "down")),
    (("dense_h_to_4h",), "dense_4h_to_h"),
)
"""Layers from which a block goes up, and the one by which it comes down, by their usual names."""
_ATTENTION = (
    *((("q_proj", "k_proj", "v_proj"), last) for last in ("o_proj", "out_proj", "c_proj")),
    *((("wq", "wk", "wv"), "wo"), (("query", "key", "value"), "out"), (("q", "k", "v"), "o")),
    *((("q", "k", "v"), "proj"), (("q", "k", "v"), "out"), (("query", "key", "value"), "proj")),
)
HEADS = (
    *("num_heads", "n_heads", "n_head", "nhead", "heads", "num_attention_heads"),
    *("num_key_value_heads", "n_kv_heads"),
)
"""Attributes that count the heads, of which each rank computes its part."""
_ELEMENTWISE = (
    *(nn.ReLU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.LeakyReLU, nn.ELU, nn.Hardswish),
    *(nn.Dropout, nn.Identity, nn.Mish, nn.Softplus),
)


def find_plan(model: nn.Module, size: int) -> dict[str, str]:
    """``colwise`` or ``rowwise`` for each layer that can be divided among ``size`` ranks.

    A pair of linear layers with nothing but elementwise work between them needs one reduction: the
    first is divided by its outputs, the second by its inputs.

    Raises:
        SettingError: When there is no such pair.
    """
    plan: dict[str, str] = {}
    for name, module in model.named_modules():
        prefix = f"{name}." if name else ""
        pairs = _in_row(module, size) if isinstance(module, nn.Sequential) else ()
        for ups, down in (*pairs, *_by_name(module, size)):
            plan |= {f"{prefix}{up}": "colwise" for up in ups} | {f"{prefix}{down}": "rowwise"}
    if not plan:
        raise SettingError(
            "parallel='tp' cannot act by itself: the model has no pair of linear layers of known "
            f"form whose inner size divides by {size}. Name them, the first by its outputs and "
            "the second by its inputs: Parallel(mode='tp', plan=(('mlp.up', 'colwise'), "
            "('mlp.down', 'rowwise')))."
        )
    return plan


def asked_plan(model: nn.Module, plan: tuple[tuple[str, str], ...], size: int) -> dict[str, str]:
    """The user's plan with every pattern replaced by the modules that it matches.

    Raises:
        SettingError: When a pattern matches none, or a layer cannot be divided; says why.
    """
    found: dict[str, str] = {}
    modules = dict(model.named_modules())
    for pattern, style in plan:
        names = [name for name in modules if name and fnmatchcase(name, pattern)]
        if not names:
            known = [n for n, m in modules.items() if isinstance(m, nn.Linear)][:5]
            raise SettingError(
                f"plan names {pattern!r}, and the model has no module of that name; linear layers "
                f"are {', '.join(known) or 'none'}."
            )
        for name in names:
            _check_layer(name, modules[name], style, size)
            found[name] = style
    return found


def _check_layer(name: str, module: nn.Module, style: str, size: int) -> None:
    if not isinstance(module, nn.Linear):
        raise SettingError(
            f"plan names {name!r}, a {type(module).__name__}: only nn.Linear is divided."
        )
    inner = module.out_features if style == "colwise" else module.in_features
    if inner % size:
        what = "outputs" if style == "colwise" else "inputs"
        raise SettingError(
            f"{name} cannot be divided: its {inner} {what} do not divide by {size} ranks."
        )


def heads_of(module: nn.Module) -> Mapping[str, int]:
    """The attributes of a module that count heads."""
    return {
        name: value
        for name in HEADS
        if isinstance(value := module.__dict__.get(name), int) and not isinstance(value, bool)
    }


def divided_attention(model: nn.Module, plan: Mapping[str, str]) -> Iterator[nn.Module]:
    """The modules whose projections a plan divides, and whose heads divide with them."""
    for name, module in model.named_modules():
        prefix = f"{name}." if name else ""
        for ups, _ in _ATTENTION:
            if all(plan.get(f"{prefix}{up}") == "colwise" for up in ups):
                yield module
                break


def _in_row(module: nn.Sequential, size: int) -> Iterator[tuple[tuple[str, ...], str]]:
    first: tuple[str, nn.Linear] | None = None
    for name, child in module.named_children():
        if type(child) is nn.Linear:
            if first is not None and _fits(first[1], child, size):
                yield (first[0],), name
                first = None
            else:
                first = (name, child)
        elif not isinstance(child, _ELEMENTWISE):
            first = None


def _by_name(module: nn.Module, size: int) -> Iterator[tuple[tuple[str, ...], str]]:
    layers = {n: child for n, child in module.named_children() if type(child) is nn.Linear}
    taken = set[str]()
    for ups, down in (*_FEED_FORWARD, *_ATTENTION):
        if not {*ups, down} <= set(layers) or taken & {*ups, down}:
            continue
        attention = len(ups) == 3
        heads = heads_of(module)
        if attention and (not heads or any(count % size for count in heads.values())):
            continue
        if _fits(layers[ups[0]], layers[down], size) and all(
            layers[up].out_features % size == 0 for up in ups
        ):
            taken |= {*ups, down}
            yield ups, down


def _fits(up: nn.Linear, down: nn.Linear, size: int) -> bool:
    return up.out_features == down.in_features and up.out_features % size == 0
