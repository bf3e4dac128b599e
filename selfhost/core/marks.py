"""Marked functions: a rule or a check is a function found by its mark, with nothing to register."""

import importlib
import pkgutil
from collections.abc import Callable
from types import ModuleType
from typing import TypeVar

Marked = TypeVar("Marked", bound=Callable[..., object])


def mark(kind: str, spec: object) -> Callable[[Marked], Marked]:
    """Attach `spec` (a dataclass with an `id`) to a function under `kind`."""

    def attach(function: Marked) -> Marked:
        setattr(function, f"__selfhost_{kind}__", spec)
        return function

    return attach


def collect(package: ModuleType, kind: str) -> dict[str, tuple[object, Callable[..., object]]]:
    """Import every module of `package` and return (spec, function) by id, in order of id.

    A duplicate id is our bug and raises ValueError.
    """
    found: dict[str, tuple[object, Callable[..., object]]] = {}
    for info in pkgutil.iter_modules(package.__path__, prefix=f"{package.__name__}."):
        module = importlib.import_module(info.name)
        for function in vars(module).values():
            spec = getattr(function, f"__selfhost_{kind}__", None)
            if spec is None or getattr(function, "__module__", "") != info.name:
                continue
            if spec.id in found:
                raise ValueError(f"{kind} {spec.id} is defined twice")
            found[spec.id] = (spec, function)
    return dict(sorted(found.items()))
