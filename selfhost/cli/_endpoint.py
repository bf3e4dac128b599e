"""What `smoke` is pointed at: a deployment of ours by its name, or any address."""

from pathlib import Path

from selfhost.cli._context import Invocation
from selfhost.core.errors import EnvironmentMissing, InputError
from selfhost.core.secret import read_key
from selfhost.shapes.endpoint import Endpoint, Inspector, SecretRef


def target(
    at_work: Invocation, *, name: str | None, url: str | None, model: str | None, key_file: Path | None
) -> tuple[Endpoint, str, Inspector | None]:
    """The endpoint, its key, and the eyes on its engine when it is ours. Raises InputError, EnvironmentMissing."""
    if url is not None:
        if name is not None:
            raise InputError(
                "a deployment's name and --url exclude each other", fix=("leave one of them out",), id="CF062"
            )
        return (*_foreign(url, model=model, key_file=key_file), None)
    if model is not None or key_file is not None:
        raise InputError(
            "--model and --key-file go with --url",
            why="A deployment knows its model and its key.",
            fix=("add --url, or leave them out",),
            id="CF063",
        )
    from selfhost.cli._work import workplace
    from selfhost.core.names import check_name
    from selfhost.deploy.endpoint import endpoint_of
    from selfhost.deploy.names import the_only

    return endpoint_of(workplace(at_work, progress="quiet"), check_name(the_only(at_work.paths, name)))


def _foreign(url: str, *, model: str | None, key_file: Path | None) -> tuple[Endpoint, str]:
    base_url = _base(url)
    key = _read(key_file) if key_file is not None else ""
    reference = SecretRef(str(key_file.resolve())) if key_file is not None else None
    chosen = model or _only_model(base_url, key)
    return Endpoint(name="", base_url=base_url, model=chosen, key=reference), key


def _base(url: str) -> str:
    """With scheme and `/v1`, as clients need it."""
    from urllib.parse import urlsplit

    text = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(text)
    except ValueError:  # `http://[::1`
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(
            f"`{url}` is not an address",
            fix=("write it like this:\nselfhost smoke --url http://127.0.0.1:8000/v1",),
            id="CF064",
        )
    text = text.rstrip("/")
    return text if parts.path.rstrip("/") else f"{text}/v1"


def _read(key_file: Path) -> str:
    try:
        return read_key(key_file)
    except OSError as error:
        raise InputError(
            f"the key file {key_file} can't be read",
            why=str(error.strerror),
            fix=("name a file that holds the key and nothing else",),
            id="CF065",
        ) from None


def _only_model(base_url: str, key: str) -> str:
    """The one model that the server lists. A server that can't be asked is missing, not wrong usage."""
    from selfhost.core.http import Client  # at use: httpx costs 187 ms

    with Client(base_url, key=key or None, timeout_s=10) as client:
        reply = client.get("models")
    if reply.status in (401, 403):
        raise InputError(
            f"{base_url} wants a key" if not key else f"{base_url} refused the key",
            why=f"/v1/models was answered {reply.status}.",
            fix=(f"name the file with its key:\nselfhost smoke --url {base_url} --key-file FILE",),
            id="CF066",
        )
    body = reply.json if reply.ok else None
    rows = body.get("data") if isinstance(body, dict) else None
    names = [str(row["id"]) for row in rows or () if isinstance(row, dict) and row.get("id")]
    if len(names) == 1:
        return names[0]
    if names:
        raise InputError(
            f"{base_url} lists {len(names)} models; which one?",
            why=", ".join(names[:8]) + (", …" if len(names) > 8 else ""),
            fix=(f"name it:\nselfhost smoke --url {base_url} --model {names[0]}",),
            id="CF067",
        )
    raise EnvironmentMissing(
        f"nothing at {base_url} says which model it serves",
        why=reply.error or f"/v1/models was answered {reply.status}.",
        fix=("check the address, and that the server has finished loading",),
        id="SM003",
    )
