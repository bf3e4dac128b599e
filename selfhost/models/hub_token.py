"""The user's hub token: where it lies, and why there is none."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
_TRUE = ("1", "on", "yes", "true")


@dataclass(frozen=True, slots=True)
class Token:
    """A hub token and where it came from: a variable's name or a file. Never printed: `repr` hides it."""

    value: str
    source: str

    def __repr__(self) -> str:
        return f"Token(from {self.source})"


@dataclass(frozen=True, slots=True)
class NoToken:
    """`reason` is a clause about what was looked at."""

    reason: str


def find(env: Mapping[str, str], token_file: Path) -> Token | NoToken:
    """By the same places in the same order as the hub's library."""
    token = from_variables(env)
    if token is not None:
        return token
    if is_true(env.get("HF_HUB_DISABLE_IMPLICIT_TOKEN")):
        return NoToken("HF_TOKEN is not set, and HF_HUB_DISABLE_IMPLICIT_TOKEN keeps the token of a login back")
    try:
        text = token_file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return NoToken(f"HF_TOKEN is not set and {token_file} does not exist")
    except OSError as error:
        return NoToken(f"HF_TOKEN is not set and {token_file} cannot be read ({error.strerror})")
    except ValueError:
        return NoToken(f"HF_TOKEN is not set and {token_file} holds no text")
    return Token(text, str(token_file)) if text else NoToken(f"HF_TOKEN is not set and {token_file} is empty")


def from_variables(env: Mapping[str, str]) -> Token | None:
    """What the user set in the environment, without that of a login."""
    found = ((name, env.get(name, "").strip()) for name in VARIABLES)
    return next((Token(value, name) for name, value in found if value), None)


def is_true(value: str | None) -> bool:
    """As the hub's library reads its switches."""
    return (value or "").lower() in _TRUE
