"""A small engine with vLLM's face that misbehaves on demand. One file, standard library only.

`python engine.py --port 8000 --served-model-name toy --fault no-done` or, inside a program, `with FakeEngine(…)`.
Its "model" is deterministic: it knows the plain prose and the questions that a smoke test may ask, follows `Say WORD`,
`Think N steps` and `JSON NAME NUMBER` like a toy reasoner, and thinks when `--reasoning-parser` is given.

Environment: VLLM_API_KEY, FAKE_ENGINE_FAULT (comma list), FAKE_ENGINE_START_S (time to start, 0.2), FAKE_ENGINE_TOKEN_S
(time per generated token, 0.0005). Log lines, answers and errors have the form that vLLM 0.32 and 0.33 print and send.
"""

import argparse
import hmac
import json
import os
import re
import select
import signal
import socket
import sys
import threading
import time
import traceback
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Self

VERSION = "0.32.0"

FAULTS = {
    # reach and exposure
    "wrong-name": "/v1/models lists another name",
    "extra-model": "/v1/models lists a second model",
    "generate-500": "/health is green, every generation answers 500",
    "generate-hang": "/health is green, a generation never answers",
    "no-key": "the key is not enforced",
    "any-key": "any key is accepted",
    "key-refused": "the right key is refused",
    "key-echo": "the refusal of a wrong key repeats what was sent",
    "refuse-client": "requests with the headers of the official client are refused, as some gateways do",
    # answers
    "empty-answer": "chat content is empty with finish stop",
    "no-finish": "finish_reason is null",
    "wrong-role": "the answer's role is user",
    "garbage": "answers are nonsense and prose is as likely as its words shuffled",
    "shuffled": "shuffled words are as likely as prose; chat answers are right",
    "parrot": "prose is known, but every chat answer is nonsense (a wrong chat template)",
    "decode-drift": "log-probabilities while decoding differ from those of prefill",
    "decode-other": "decoding picks tokens that prefill finds unlikely",
    "length-says-stop": "an answer cut by max_tokens says finish stop",
    "stop-says-length": "an answer ended by a stop string says finish length",
    "stop-included": "the stop string is part of the answer",
    "stop-ignored": "the stop string has no effect",
    "max-tokens-ignored": "max_tokens has no effect",
    "usage-prompt": "usage counts too few prompt tokens",
    "usage-completion": "usage counts too many completion tokens",
    "no-usage": "there is no usage",
    # stream
    "no-done": "the stream ends without [DONE]",
    "no-usage-chunk": "stream_options.include_usage has no effect",
    "bad-frame": "a chunk of the stream is not JSON",
    "not-sse": "the stream's content type is application/json",
    "stream-differs": "streamed text is not the unstreamed text",
    "stream-cut": "the connection breaks in the middle of a stream",
    "utf8-replaced": "a character cut by a token border becomes U+FFFD",
    "utf8-lost": "a character cut by a token border is dropped",
    # reasoning
    "think-leak": "thinking and its tags are in content",
    "think-swallowed": "the whole answer is in reasoning, content is null, finish stop",
    "off-thinks": "enable_thinking false has no effect",
    "off-stream-thinks": "enable_thinking false has no effect on streams",
    "on-silent": "enable_thinking true has no effect",
    "default-flipped": "a client that sends nothing gets the other mode than configured",
    "budget-says-stop": "thinking cut by max_tokens says finish stop",
    "budget-ignored": "thinking_token_budget has no effect",
    "budget-empty": "thinking cut by max_tokens leaves reasoning and content empty",
    # limits and load
    "overlong-crash": "an over-long input ends the server",
    "overlong-dead": "after an over-long input no generation works",
    "overlong-accept": "an over-long input is cut silently",
    "overlong-500": "an over-long input is answered 500",
    "crosstalk": "requests at the same time get each other's answers",
    "serial-refuse": "a second request at the same time is answered 503",
    "slot-leak": "the slot of a client that went away is never freed",
    # abilities that other engines lack (no fault of theirs)
    "no-prompt-logprobs": "prompt_logprobs is refused",
    "no-logprobs": "logprobs of any kind are refused",
    "no-tokenize": "/tokenize and /detokenize do not exist",
    "byte-level": "the vocabulary has bytes only, as toys have",
    "no-template": "the model has no chat template: every chat is refused",
    "no-length": "/v1/models does not say how long the context is",
    "capped": "the server allows 8 tokens an answer, whatever max_tokens says",
    "no-metrics": "/metrics does not exist",
    "reasoning-content": "thinking is in reasoning_content and an empty content is an empty string, as on SGLang",
    # life
    "die-load": "the engine dies while loading: out of memory",
    "die-serve": "the engine dies at the third generation",
    "never-ready": "the start never ends",
    "exit-3": "the process exits with code 3 without a word",
}

# What the toy was "trained on". A smoke test's prose that is not here is unknown to it.
PROSE = """
On Saturday morning we walked down to the market to buy bread, apples and a piece of cheese. It had rained
during the night, and the streets were still wet. My sister carried the basket, and I held the umbrella in
case the clouds came back before we were home.

The kitchen was warm and quiet. A pot of soup stood on the stove, and the smell of onions filled the whole
house. When my father came in from the garden, he washed his hands, sat down at the table and asked what we
had learned at school that day.

The train to the coast leaves every hour and takes about forty minutes. In summer it is full of families with
bags and towels, but in winter you can often have a whole carriage to yourself. Sit on the left side if you
want to see the water first.

If the lamp does not turn on, check first that it is plugged in. Then try another bulb. If it still stays
dark, the switch may be broken, and a new one costs only a few coins. Always pull the plug before you open
anything with a screwdriver.

Our neighbour has an old dog that sleeps in front of the door for most of the day. He lifts his head when
someone comes up the stairs, looks at them for a moment, and then goes back to sleep. The children like to sit
next to him and read their books aloud.
"""

ANSWERS = (
    (r"capital of france", "The capital of France is Paris."),
    (r"capital of italy", "The capital of Italy is Rome."),
    (r"2 ?(\+|plus) ?3|two plus three", "2 plus 3 is 5."),
    (r"2 ?(\+|plus) ?2|two plus two", "2 plus 2 is 4."),
    (r"colou?r .*sky|sky .*colou?r", "The sky is blue on a clear day."),
    (r"days .*week", "There are seven days in a week."),
    (r"opposite of (\"|')?hot", "The opposite of hot is cold."),
    (r"opposite of (\"|')?up\b", "The opposite of up is down."),
    (r"meow", "A cat says meow."),
    (r"bark", "A dog barks."),
    (r"frozen water|water .*frozen", "Frozen water is called ice."),
    (r"first month", "The first month of the year is January."),
    (r"sun rise", "The sun rises in the east."),
    (r"9\.11", "9.8 is larger than 9.11."),
    (r"colou?r .*grass|grass .*colou?r", "Grass is green."),
    (r"legs .*(spider|dog|cat)", "A spider has eight legs; a dog and a cat have four."),
    (r"largest (ocean|planet)", "The Pacific is the largest ocean; Jupiter is the largest planet."),
    (r"star .*(earth|day)|closest star", "The Sun is the star closest to the Earth."),
)

_PIECE = re.compile(r" ?[A-Za-z]{1,8}|[\x00-\x7f]|[^\x00-\x7f]", re.ASCII)
_NONSENSE = (" qat", " blen", "##", " vok", " iz", "\n", " umk", "}", " drel", " opy")


class Vocabulary:
    """Text ↔ token ids: 0 to 255 are bytes, words get the number of their checksum, so every process agrees."""

    def __init__(self, *, bytes_only: bool = False) -> None:
        self._bytes_only = bytes_only
        self._pieces: dict[int, bytes] = {number: bytes([number]) for number in range(256)}

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        if self._bytes_only:
            return list(text.encode())
        for piece in _PIECE.findall(text):
            data = piece.encode()
            if len(data) == 1 or not piece.isascii():
                ids.extend(data)
                continue
            number = 1000 + zlib.crc32(data) % 48_000
            while self._pieces.setdefault(number, data) != data:
                number += 1
            ids.append(number)
        return ids

    def bytes_of(self, number: int) -> bytes:
        return self._pieces.get(number, b"?")

    def decode(self, ids: list[int]) -> str:
        return b"".join(self.bytes_of(number) for number in ids).decode("utf-8", "replace")


class Toy:
    """The model. Every probability is a function of the tokens before, so decoding and prefill agree."""

    def __init__(self, vocabulary: Vocabulary, faults: frozenset[str]) -> None:
        self.vocabulary = vocabulary
        self.faults = faults
        self._follow: dict[tuple[int, int], int] = {}
        for passage in PROSE.strip().split("\n\n"):
            ids = vocabulary.encode(passage.replace("\n", " "))
            for first, second in pairwise(ids):
                self._follow.setdefault((first, second), len(self._follow))
        self._known = {number for pair in self._follow for number in pair}

    def script(self, before: str) -> str | None:
        """The whole text that the model wants to say after `before`, or None when it is not a chat."""
        head, mark, said = before.rpartition("<|im_start|>assistant\n")
        if not mark:
            return None
        question = head.rpartition("<|im_start|>user\n")[2].partition("<|im_end|>")[0]
        thought, answer = self.reply(question)
        thinks = said.startswith("<think>") and not said.startswith("<think>\n\n</think>")
        if thinks:
            spoken, closed, _ = said.partition("</think>")
            return (spoken if closed else f"<think>\n{thought}\n") + f"</think>\n\n{answer}"
        return f"<think>\n\n</think>\n\n{answer}" if said.startswith("<think>") else answer

    def reply(self, question: str) -> tuple[str, str]:
        thought, answer = self._reply(question)
        if self.faults & {"garbage", "parrot"}:
            seed = zlib.crc32(question.encode())
            answer = "".join(_NONSENSE[(seed >> shift) % len(_NONSENSE)] for shift in range(16)).strip()
        return thought, answer

    @staticmethod
    def _reply(question: str) -> tuple[str, str]:
        lowered = question.lower()
        if found := re.search(r"think (\d+) steps", lowered):
            return " ".join(str(step) for step in range(1, int(found[1]) + 1)), "done"
        if found := re.search(r"json (\w+) (\d+)", question, re.IGNORECASE):
            return f"{found[1]} is {found[2]}.", json.dumps({"name": found[1], "value": int(found[2])})
        for pattern, answer in ANSWERS:
            if re.search(pattern, lowered):
                return (
                    "The user asks a plain question. I know this one, so I can answer it in one short line now.",
                    answer,
                )
        said = re.search(
            r"(?:say|repeat|write|copy)(?: exactly)?(?: this)?(?: line| text| word)?(?: back)?:?\s+(.+)",
            question,
            re.IGNORECASE | re.DOTALL,
        )
        if said:
            word = said[1].strip().strip("\"'").rstrip(".")
            return f"say {word}. The user wants these words back and nothing else, so I give them just so.", word
        return "The user says something. I stay polite and short and give one line.", "I am a small test engine."

    def next(self, ids: list[int]) -> int | None:
        """The most likely next token; None ends the answer."""
        text = self.vocabulary.decode(ids)
        script = self.script(text)
        if script is not None:
            said = text.rpartition("<|im_start|>assistant\n")[2]
            wanted = self.vocabulary.encode(script)
            place = len(self.vocabulary.encode(said)) if "\ufffd" not in said else self._bytes_place(ids, wanted)
            return wanted[place] if place < len(wanted) else None
        options = [(rank, second) for (first, second), rank in self._follow.items() if ids and first == ids[-1]]
        return min(options)[1] if options else self.vocabulary.encode(" and")[0]

    @staticmethod
    def _bytes_place(ids: list[int], wanted: list[int]) -> int:
        """Inside a character cut in two the decoded text cannot be counted; the tail of the ids can."""
        for place in range(len(wanted), 0, -1):
            if ids[-place:] == wanted[:place]:
                return place
        return 0

    def score(self, before: list[int], number: int) -> tuple[float, int]:
        """Log-probability and rank of `number` after `before`."""
        text = self.vocabulary.decode(before)
        if "<|im_start|>assistant\n" in text:
            return (-0.05, 1) if self.next(before) == number else (-9.0 - number % 7 / 10, 40 + number % 50)
        if self.faults & {"garbage", "shuffled"}:
            return -9.5 - number % 11 / 10, 300 + number % 400
        if before and (before[-1], number) in self._follow:
            return -1.2 - number % 5 / 10, 1 if self.next(before) == number else 2
        if self.next(before) == number:
            return -1.0, 1
        return (-7.0 - number % 5 / 10, 60) if number in self._known else (-11.0, 2000)


@dataclass(kw_only=True)
class Options:
    """The flags of vLLM that the toy honours."""

    host: str = "127.0.0.1"
    port: int = 0
    model: str = ""
    served_name: str = "toy"
    context: int = 2048
    slots: int = 8
    parser: str = ""
    template_defaults: dict[str, object] = field(default_factory=dict)
    key: str = ""
    faults: frozenset[str] = frozenset()
    token_s: float = 0.0005
    face: str = "vllm"
    """`sglang`: that engine's fields, errors, metrics and log lines (0.5.23: entrypoints/openai, managers)."""
    version: str = VERSION
    metrics: bool = True


class Gone(Exception):
    """The client closed its connection."""


@dataclass
class Job:
    """One generation as it was asked."""

    prompt: list[int]
    max_tokens: int
    stops: tuple[str, ...]
    endless: bool
    chat: bool
    thinks: bool
    budget: int | None
    stream: bool
    forced: list[int] | None = None


@dataclass
class Piece:
    """One token as it reaches the client, held back until its characters are whole."""

    text: str
    number: int
    finish: str | None = None


class FakeEngine:
    """The server, inside this process. `with FakeEngine(options) as engine: engine.url`."""

    def __init__(self, options: Options) -> None:
        self.options = options
        unknown = {fault.partition(":")[0] for fault in options.faults} - set(FAULTS)
        if unknown:
            raise ValueError(f"no such fault: {', '.join(sorted(unknown))}")
        self.vocabulary = Vocabulary(bytes_only="byte-level" in options.faults)
        self.toy = Toy(self.vocabulary, options.faults)
        self.slots = threading.Semaphore(options.slots)
        self.lock = threading.Lock()
        self.running = self.waiting = self.served = self.prompt_tokens = self.generated_tokens = 0
        self.broken = False
        self.mixed: list[list[int]] = []
        self.server = Server((options.host, options.port), Handler)
        self.server.engine = self
        self.port = int(self.server.server_address[1])
        self.url = f"http://{options.host}:{self.port}/v1"

    @property
    def sglang(self) -> bool:
        return self.options.face == "sglang"

    @property
    def says_reasoning_content(self) -> bool:
        return self.sglang or self.fault("reasoning-content")

    def fault(self, name: str) -> bool:
        return name in self.options.faults

    def __enter__(self) -> Self:
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def generate(self, job: Job, gone: "Watch") -> Iterator[Piece]:
        """Tokens of one answer, one at a time, with a slot held."""
        with self.lock:
            self.waiting += 1
        while not self.slots.acquire(timeout=0.02):
            if gone.now():
                with self.lock:
                    self.waiting -= 1
                raise Gone
        with self.lock:
            self.waiting -= 1
            self.running += 1
            self.prompt_tokens += len(job.prompt)
            self.mixed.append(job.prompt)
        leak = False
        try:
            if self.fault("crosstalk"):
                job.prompt = self._somebody_else(job.prompt)
            yield from self._tokens(job, gone)
        except (Gone, GeneratorExit):
            leak = self.fault("slot-leak")
            raise
        finally:
            with self.lock:
                if job.prompt in self.mixed:
                    self.mixed.remove(job.prompt)
                self.running -= 0 if leak else 1
            if not leak:
                self.slots.release()

    def _somebody_else(self, prompt: list[int]) -> list[int]:
        deadline = time.monotonic() + 0.05
        while time.monotonic() < deadline:
            with self.lock:
                others = [other for other in self.mixed if other != prompt]
            if others:
                return others[-1]
            time.sleep(0.005)
        return prompt

    def _tokens(self, job: Job, gone: "Watch") -> Iterator[Piece]:
        ids, out, text, held = list(job.prompt), 0, "", b""
        thought = 0 if job.thinks else None
        close = self.vocabulary.encode("\n</think>\n\n")
        forced: list[int] = []
        while True:
            time.sleep(max(self.options.token_s, 0.001) if job.endless else self.options.token_s)
            if gone.now():
                raise Gone
            if thought is not None and job.budget is not None and thought >= job.budget:
                forced, thought = list(close), None
            number = forced.pop(0) if forced else self._pick(ids, job, out)
            if number is None:
                yield Piece("", 0, "stop")
                return
            ids.append(number)
            out += 1
            with self.lock:
                self.generated_tokens += 1
            held, whole = self._whole(held + self.vocabulary.bytes_of(number))
            text += whole
            if thought is not None:
                thought = None if "</think>" in text else thought + 1
            stop = next((word for word in job.stops if word in text), None) if not self.fault("stop-ignored") else None
            if stop is not None:
                keep = text.index(stop) + (len(stop) if self.fault("stop-included") else 0)
                surplus = len(text) - keep
                said = whole[: len(whole) - surplus] if surplus <= len(whole) else f"\b{surplus - len(whole)}"
                yield Piece(said, number, "length" if self.fault("stop-says-length") else "stop")
                return
            last = out >= job.max_tokens and not (self.fault("max-tokens-ignored") and out < job.max_tokens + 40)
            yield Piece(whole, number, ("stop" if self.fault("length-says-stop") else "length") if last else None)
            if last:
                return

    def _pick(self, ids: list[int], job: Job, out: int) -> int | None:
        if job.forced is not None and not job.thinks:
            return job.forced[out] if out < len(job.forced) else None
        number = self.toy.next(ids)
        if number is None and job.endless:
            return self.vocabulary.encode(" more")[0]
        if number is not None and self.fault("decode-other") and len(ids) % 3 == 0:
            return self.vocabulary.encode(" hm")[0]
        return number

    def _whole(self, data: bytes) -> tuple[bytes, str]:
        """Split `data` into an unfinished character at its end and the text before."""
        try:
            return b"", data.decode()
        except UnicodeDecodeError as error:
            if error.end == len(data) and len(data) - error.start < 4 and error.reason == "unexpected end of data":
                if self.fault("utf8-replaced"):
                    return b"", data.decode("utf-8", "replace")
                if self.fault("utf8-lost"):
                    return b"", data[: error.start].decode()
                return data[error.start :], data[: error.start].decode()
            return b"", data.decode("utf-8", "replace")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    engine: FakeEngine

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002 - a client that left
        error = sys.exc_info()[1]
        if not isinstance(error, (ConnectionError, Gone)):
            traceback.print_exc()


class Watch:
    """Sees whether the client has closed its side."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def now(self) -> bool:
        readable, _, _ = select.select([self._connection], [], [], 0)
        if not readable:
            return False
        try:
            return self._connection.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return True


class Refused(Exception):
    def __init__(self, status: int, message: str, *, kind: str = "BadRequestError", param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": status}}

    def flat(self) -> dict:
        """As SGLang answers it."""
        return {"object": "error", **self.body["error"]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    @property
    def engine(self) -> FakeEngine:
        return self.server.engine

    def log_message(self, format: str, *args: object) -> None:
        if self.engine.options.port:
            print(f"INFO:     {self.client_address[0]}:{self.client_address[1]} - {format % args}", flush=True)

    def do_GET(self) -> None:
        self._answer(
            {
                "/health": self._health,
                "/ping": self._health,
                "/v1/models": self._models,
                **({"/metrics": self._metrics} if self.engine.options.metrics else {}),
                **self._own_pages(),
            }
        )

    def _own_pages(self) -> dict:
        if not self.engine.sglang:
            return {"/version": lambda _: self._json(200, {"version": self.engine.options.version})}
        info = {"model_path": self.engine.options.model, "is_generation": True}
        server = {"version": self.engine.options.version, "served_model_name": self.engine.options.served_name}
        return {
            "/health_generate": self._health,
            "/ready": lambda _: self._raw(200, b"", "text/plain"),
            "/model_info": lambda _: self._json(200, info),
            "/server_info": lambda _: self._json(200, server),
        }

    def do_POST(self) -> None:
        self._answer(
            {
                "/v1/chat/completions": self._chat,
                "/v1/completions": self._completions,
                "/tokenize": self._tokenize,
                "/detokenize": self._detokenize,
            }
        )

    def _answer(self, routes: dict) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length) if length else b""
        path = self.path.partition("?")[0]
        engine = self.engine
        missing = (engine.fault("no-tokenize") and path.endswith("tokenize")) or (
            engine.fault("no-metrics") and path == "/metrics"
        )
        if path not in routes or missing:
            self._json(404, {"detail": "Not Found"})
            return
        if path.startswith("/v1") and not self._allowed():
            echo = f": {self.headers.get('Authorization', '')}" if engine.fault("key-echo") else ""
            self._json(401, {"error": f"Unauthorized{echo}"})
            return
        if engine.fault("refuse-client") and any(name.lower().startswith("x-stainless") for name in self.headers):
            self._json(403, {"error": "Forbidden"})
            return
        try:
            body = json.loads(raw) if raw else {}
            routes[path](body)
        except ValueError:
            self._json(400, Refused(400, "1 validation error:\n  JSON decode error").body)
        except Refused as refusal:
            self._json(refusal.status, refusal.flat() if engine.sglang else refusal.body)
        except Gone:
            self.close_connection = True

    def _allowed(self) -> bool:
        engine, given = self.engine, self.headers.get("Authorization", "")
        if engine.fault("key-refused"):
            return False
        if not engine.options.key or engine.fault("no-key"):
            return True
        if engine.fault("any-key") and given:
            return True
        return hmac.compare_digest(given.encode(), f"Bearer {engine.options.key}".encode())

    def _json(self, status: int, body: object) -> None:
        data = json.dumps(body, ensure_ascii=False).encode()
        self._raw(status, data, "application/json")

    def _raw(self, status: int, data: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Server", "uvicorn")
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _health(self, _: object) -> None:
        if self.engine.sglang:  # it generates a token, and looks a second later whether one came (http_server.py)
            time.sleep(1.0)
        self._raw(200, b"", "text/plain")

    def _models(self, _: object) -> None:
        options = self.engine.options
        names = ["other-model"] if self.engine.fault("wrong-name") else [options.served_name]
        names += ["second-model"] if self.engine.fault("extra-model") else []
        rows = [
            {
                "id": name,
                "object": "model",
                "created": 1,
                "owned_by": options.face,
                "root": options.model,
                **({} if self.engine.fault("no-length") else {"max_model_len": options.context}),
            }
            for name in names
        ]
        self._json(200, {"object": "list", "data": rows})

    def _metrics(self, _: object) -> None:
        engine = self.engine
        label = f'{{engine="0",model_name="{engine.options.served_name}"}}'
        rows = {
            "num_requests_running": engine.running,
            "num_requests_waiting": engine.waiting,
            "prompt_tokens_total": engine.prompt_tokens,
            "generation_tokens_total": engine.generated_tokens,
        }
        if engine.sglang:
            label = f'{{engine_type="unified",model_name="{engine.options.served_name}",tp_rank="0",pp_rank="0"}}'
            own = {"num_requests_running": "num_running_reqs", "num_requests_waiting": "num_queue_reqs"}
            rows = {own.get(name, name): value for name, value in rows.items()}
        face = engine.options.face
        text = "".join(f"{face}:{name}{label} {float(value)}\n" for name, value in rows.items())
        self._raw(200, text.encode(), "text/plain; version=1.0.0; charset=utf-8")

    # ---- tokens

    def _render(self, body: dict) -> tuple[str, bool]:
        """The chat as text, and whether the model will think."""
        engine = self.engine
        if engine.fault("no-template"):
            raise Refused(
                400,
                "As of transformers v4.44, default chat template is no longer allowed, so you must provide a chat "
                "template if the tokenizer does not define one.",
            )
        kwargs = {**engine.options.template_defaults, **(body.get("chat_template_kwargs") or {})}
        asked = kwargs.get("enable_thinking")
        if engine.fault("default-flipped") and "enable_thinking" not in (body.get("chat_template_kwargs") or {}):
            asked = asked is False
        if asked is False and (
            engine.fault("off-thinks") or (engine.fault("off-stream-thinks") and body.get("stream"))
        ):
            asked = True
        if asked and engine.fault("on-silent"):
            asked = False
        thinks = bool(engine.options.parser) and asked is not False
        lines = [f"<|im_start|>{turn.get('role')}\n{self._content(turn)}<|im_end|>\n" for turn in body["messages"]]
        closed = "<think>\n\n</think>\n\n" if engine.options.parser else ""
        return "".join(lines) + "<|im_start|>assistant\n" + ("<think>\n" if thinks else closed), thinks

    @staticmethod
    def _content(turn: dict) -> str:
        content = turn.get("content") or ""
        return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)

    def _tokenize(self, body: dict) -> None:
        text = self._render(body)[0] if "messages" in body else body["prompt"]
        ids = self.engine.vocabulary.encode(text)
        self._json(
            200, {"count": len(ids), "max_model_len": self.engine.options.context, "tokens": ids, "token_strs": None}
        )

    def _detokenize(self, body: dict) -> None:
        self._json(200, {"prompt": self.engine.vocabulary.decode(body["tokens"])})

    # ---- generation

    def _check(self, body: dict) -> None:
        engine, options = self.engine, self.engine.options
        if body.get("model") not in (None, options.served_name) and not engine.fault("wrong-name"):
            raise Refused(
                404,
                f"The model `{body['model']}` does not exist. Valid aliases: {options.served_name}.",
                kind="NotFoundError",
                param="model",
            )
        budget = None if engine.sglang else body.get("thinking_token_budget")
        if budget is not None and not options.parser:
            raise Refused(
                400,
                "thinking_token_budget is set but reasoning_config is not configured. Please set "
                "--reasoning-parser and/or --reasoning-config to use thinking_token_budget.",
            )
        if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int)):
            raise Refused(400, "thinking_token_budget must be an integer", param="thinking_token_budget")
        if engine.fault("no-logprobs") and (body.get("logprobs") or "prompt_logprobs" in body):
            raise Refused(400, "logprobs are not supported")
        if engine.fault("no-prompt-logprobs") and (body.get("prompt_logprobs") is not None or body.get("echo")):
            raise Refused(400, "prompt_logprobs is not supported")

    def _job(self, body: dict, prompt: list[int], *, chat: bool, thinks: bool) -> Job:
        engine, context = self.engine, self.engine.options.context
        self._check(body)
        if len(prompt) >= context:
            prompt = self._overlong(prompt)
        asked = body.get("max_completion_tokens", body.get("max_tokens"))
        asked = (context - len(prompt) if chat else 16) if asked is None else asked
        if asked < 1:
            raise Refused(
                400,
                f"max_tokens must be at least 1, got {asked}. (parameter=max_tokens, value={asked})",
                param="max_tokens",
            )
        if asked > context and not engine.sglang:
            raise Refused(
                400,
                f"max_tokens={asked} cannot be greater than max_model_len={context}. Please request "
                f"fewer output tokens. (parameter=max_tokens, value={asked})",
                param="max_tokens",
            )
        if asked + len(prompt) > context and engine.sglang:
            raise Refused(
                400,
                f"Requested token count exceeds the model's maximum context length of {context} tokens. You requested "
                f"a total of {asked + len(prompt)} tokens: {len(prompt)} tokens from the input messages and {asked} "
                "tokens for the completion. Please reduce the number of tokens in the input messages or the "
                "completion to fit within the limit.",
            )
        if asked + len(prompt) > context:
            raise Refused(
                400,
                f"This model's maximum context length is {context} tokens. However, you requested "
                f"{asked} output tokens and your prompt contains {len(prompt)} input tokens, for a total "
                f"of {asked + len(prompt)} tokens.",
                param="input_tokens",
            )
        asked = min(asked, 8) if engine.fault("capped") else asked
        stops = body.get("stop") or ()
        self._misbehave()
        engine.served += 1
        return Job(
            prompt=prompt,
            max_tokens=asked,
            stops=(stops,) if isinstance(stops, str) else tuple(stops),
            endless=bool(body.get("ignore_eos")),
            chat=chat,
            thinks=thinks,
            forced=self._forced(body),
            budget=None if engine.fault("budget-ignored") or engine.sglang else body.get("thinking_token_budget"),
            stream=bool(body.get("stream")),
        )

    def _forced(self, body: dict) -> list[int] | None:
        choices = None if self.engine.sglang else (body.get("structured_outputs") or {}).get("choice")
        return self.engine.vocabulary.encode(choices[0]) if choices else None

    def _misbehave(self) -> None:
        engine = self.engine
        if engine.fault("generate-500") or engine.broken:
            raise Refused(
                500,
                "EngineCore encountered an issue. See stack trace (above) for the root cause.",
                kind="InternalServerError",
            )
        if engine.fault("generate-hang"):
            while not Watch(self.connection).now():
                time.sleep(0.02)
            raise Gone
        if engine.fault("die-serve") and engine.served >= 2:
            die("EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.")
        if engine.fault("serial-refuse") and engine.running:
            raise Refused(503, "The server is busy", kind="ServiceUnavailable")

    def _overlong(self, prompt: list[int]) -> list[int]:
        engine, context = self.engine, self.engine.options.context
        if engine.fault("overlong-accept"):
            return prompt[-context // 2 :]
        if engine.fault("overlong-crash"):
            if engine.options.port:
                die("RuntimeError: The size of tensor a must match the size of tensor b at non-singleton dimension 1")
            threading.Thread(target=engine.server.server_close, daemon=True).start()
            self.connection.close()
            engine.server.shutdown()
            raise Gone
        if engine.fault("overlong-dead"):
            engine.broken = True
        if engine.fault("overlong-500"):
            raise Refused(500, "index out of range in self", kind="InternalServerError")
        if engine.sglang:
            raise Refused(
                400,
                f"The input ({len(prompt)} tokens) is longer than the model's context length ({context} tokens).",
            )
        raise Refused(
            400,
            f"This model's maximum context length is {context} tokens. However, your prompt contains at "
            f"least {context + 1} input tokens, which exceeds this limit even without any output tokens. "
            f"Please reduce the length of the input prompt. (parameter=input_tokens, value={context + 1})",
            param="input_tokens",
        )

    def _usage(self, job: Job, out: int, thought: int) -> dict:
        prompt = len(job.prompt) - (3 if self.engine.fault("usage-prompt") else 0)
        out += 4 if self.engine.fault("usage-completion") else 0
        usage: dict = {"prompt_tokens": prompt, "total_tokens": prompt + out, "completion_tokens": out}
        if self.engine.sglang:
            usage["reasoning_tokens"] = thought
        elif self.engine.options.parser and job.chat:
            usage["completion_tokens_details"] = {"reasoning_tokens": thought}
        return usage

    def _decoded_logprob(self, before: list[int], number: int) -> float:
        logprob, _ = self.engine.toy.score(before, number)
        return min(0.0, logprob - 1.7) if self.engine.fault("decode-drift") else logprob

    def _run(self, job: Job) -> Iterator[Piece]:
        yield from self.engine.generate(job, Watch(self.connection))

    # ---- /v1/completions

    def _completions(self, body: dict) -> None:
        vocabulary = self.engine.vocabulary
        prompt = body.get("prompt", "")
        ids = vocabulary.encode(prompt) if isinstance(prompt, str) else list(prompt)
        job = self._job(body, ids, chat=False, thinks=False)
        asks = body.get("prompt_logprobs") is not None and not self.engine.sglang
        scored = self._prompt_logprobs(ids) if asks else None
        base = {"id": "cmpl-1", "created": int(time.time()), "model": self.engine.options.served_name}
        if job.stream:
            self._stream(body, job, base | {"object": "text_completion"}, self._completion_chunk)
            return
        text, numbers, finish = "", [], None
        for piece in self._run(job):
            text = apply(text, piece.text)
            numbers += [piece.number] if piece.number else []
            finish = piece.finish or finish
        choice: dict = {
            "index": 0,
            "text": text,
            "finish_reason": finish,
            "stop_reason": None,
            "logprobs": None,
            "prompt_logprobs": scored,
        }
        if body.get("logprobs") is not None:
            choice["logprobs"] = self._completion_logprobs(job.prompt, numbers)
        if body.get("echo"):
            echoed = self._completion_logprobs([], ids) if body.get("logprobs") is not None else None
            if echoed:
                echoed["token_logprobs"][0] = None
                choice["logprobs"] = {key: echoed[key] + choice["logprobs"][key] for key in echoed}
            choice["text"] = vocabulary.decode(ids) + text
        if body.get("return_token_ids"):
            choice |= {"prompt_token_ids": ids, "token_ids": numbers}
        answer = base | {"object": "text_completion", "choices": [choice], "usage": self._usage(job, len(numbers), 0)}
        if self.engine.fault("no-usage"):
            answer["usage"] = None
        self._json(200, answer)

    def _prompt_logprobs(self, ids: list[int]) -> list:
        rows: list = [None]
        for place in range(1, len(ids)):
            logprob, rank = self.engine.toy.score(ids[:place], ids[place])
            word = self.engine.vocabulary.decode([ids[place]])
            rows.append({str(ids[place]): {"logprob": logprob, "rank": rank, "decoded_token": word}})
        return rows

    def _completion_logprobs(self, before: list[int], numbers: list[int]) -> dict:
        before, words, logprobs = list(before), [], []
        for number in numbers:
            words.append(self.engine.vocabulary.decode([number]))
            logprobs.append(self._decoded_logprob(before, number))
            before.append(number)
        tops = [{word: logprob} for word, logprob in zip(words, logprobs, strict=True)]
        return {"text_offset": [0] * len(words), "token_logprobs": logprobs, "tokens": words, "top_logprobs": tops}

    @staticmethod
    def _completion_chunk(piece: Piece, _: dict) -> dict | None:
        return {
            "index": 0,
            "text": piece.text.lstrip("\b0123456789") if piece.text[:1] == "\b" else piece.text,
            "logprobs": None,
            "finish_reason": piece.finish,
        }

    # ---- /v1/chat/completions

    def _chat(self, body: dict) -> None:
        if not isinstance(body.get("messages"), list) or not body["messages"]:
            raise Refused(400, "1 validation error:\n  messages: Field required", param="messages")
        prompt, thinks = self._render(body)
        job = self._job(body, self.engine.vocabulary.encode(prompt), chat=True, thinks=thinks)
        base = {"id": "chatcmpl-1", "created": int(time.time()), "model": self.engine.options.served_name}
        if job.stream:
            self._stream(body, job, base | {"object": "chat.completion.chunk"}, self._chat_chunk)
            return
        text, numbers, finish = "", [], None
        for piece in self._run(job):
            text = apply(text, piece.text)
            numbers += [piece.number] if piece.number else []
            finish = piece.finish or finish
        reasoning, content, thought = self._split(text, job)
        message = {
            "role": "user" if self.engine.fault("wrong-role") else "assistant",
            "refusal": None,
            "tool_calls": [],
            **self._fields(reasoning, content),
        }
        finish = self._finish(finish, content)
        choice: dict = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish, "stop_reason": None}
        if body.get("logprobs"):
            rows = self._completion_logprobs(job.prompt, numbers)
            choice["logprobs"] = {
                "content": [
                    {"token": word, "logprob": logprob, "bytes": list(word.encode()), "top_logprobs": []}
                    for word, logprob in zip(rows["tokens"], rows["token_logprobs"], strict=True)
                ]
            }
        answer = base | {"object": "chat.completion", "choices": [choice]}
        answer["usage"] = None if self.engine.fault("no-usage") else self._usage(job, len(numbers), thought)
        self._json(200, answer)

    def _finish(self, finish: str | None, content: str) -> str | None:
        if self.engine.fault("no-finish"):
            return None
        return "stop" if finish == "length" and not content and self.engine.fault("budget-says-stop") else finish

    def _split(self, text: str, job: Job) -> tuple[str, str, int]:
        """Reasoning, content and the number of thinking tokens, as a reasoning parser does it."""
        engine = self.engine
        swallowed = engine.fault("think-swallowed")
        if engine.fault("empty-answer"):
            return "", "", 0
        if not job.thinks:
            return (text, "", 0) if swallowed and engine.options.parser else ("", text, 0)
        reasoning, closed, content = text.partition("</think>")
        thought = len(engine.vocabulary.encode(reasoning))
        if engine.fault("think-leak"):
            return "", "<think>\n" + text, thought
        if not closed and engine.fault("budget-empty"):
            return "", "", 0
        return (reasoning + content, "", thought) if swallowed else (reasoning, content, thought)

    def _fields(self, reasoning: str, content: str) -> dict:
        if self.engine.says_reasoning_content:
            return {"content": content, "reasoning_content": reasoning or None}
        return {"content": content or None, "reasoning": reasoning or None}

    def _chat_chunk(self, piece: Piece, state: dict) -> dict | None:
        """One delta. Text of a stream is split like the whole text; what is new since the last piece is sent."""
        state["text"] = apply(state["text"], piece.text)
        job: Job = state["job"]
        reasoning, content, thought = self._split(hold_tag(state["text"]) if not piece.finish else state["text"], job)
        if self.engine.fault("stream-differs"):
            content = content.replace("e", "a")
        state["thought"] = thought
        delta: dict = {}
        name = "reasoning_content" if self.engine.says_reasoning_content else "reasoning"
        for field_name, whole in ((name, reasoning), ("content", content)):
            if len(whole) > len(state[field_name]):
                delta[field_name] = whole[len(state[field_name]) :]
                state[field_name] = whole
        if not delta and piece.finish is None:
            return None
        finish = self._finish(piece.finish, content) if piece.finish else None
        return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}

    # ---- server-sent events

    def _stream(self, body: dict, job: Job, base: dict, chunk_of: object) -> None:
        engine = self.engine
        pieces = self._run(job)
        state: dict = {"text": "", "job": job, "reasoning": "", "reasoning_content": "", "content": "", "thought": 0}
        self.send_response(200)
        kind = "application/json" if engine.fault("not-sse") else "text/event-stream; charset=utf-8"
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        out = 0
        try:
            if job.chat:
                first = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
                self._event(base | {"choices": [first]})
            for piece in pieces:
                out += 1 if piece.number else 0
                choice = chunk_of(piece, state)
                if choice is not None:
                    self._event(base | {"choices": [choice]})
                if out == 2 and engine.fault("bad-frame"):
                    self._send(b'data: {"id": "chatcmpl-1", "choi\n\n')
                if out == 3 and engine.fault("stream-cut"):
                    pieces.close()
                    self.connection.shutdown(socket.SHUT_RDWR)
                    raise Gone
            if (body.get("stream_options") or {}).get("include_usage") and not engine.fault("no-usage-chunk"):
                self._event(base | {"choices": [], "usage": self._usage(job, out, state["thought"])})
            if not engine.fault("no-done"):
                self._send(b"data: [DONE]\n\n")
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            pieces.close()
            raise Gone from None

    def _event(self, body: dict) -> None:
        self._send(b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n")

    def _send(self, data: bytes) -> None:
        # Two writes cut frames and characters at awkward places, as a proxy may.
        for part in (data[: len(data) // 2 + 1], data[len(data) // 2 + 1 :]):
            if part:
                self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")


def apply(text: str, piece: str) -> str:
    """Add a piece; `\\bN` takes back N characters that a stop string had already begun."""
    return text[: -int(piece[1:])] if piece[:1] == "\b" and piece[1:].isdigit() else text + piece


def hold_tag(text: str) -> str:
    """Keep the beginning of a possible `</think>` back, as parsers do."""
    tag = "</think>"
    for size in range(len(tag) - 1, 0, -1):
        if text.endswith(tag[:size]):
            return text[:-size]
    return text


# ---- the process


def log(line: str, *, source: str = "APIServer", place: str = "api_server.py:1") -> None:
    stamp = time.strftime("%m-%d %H:%M:%S")
    print(f"({source} pid={os.getpid()}) INFO {stamp} [{place}] {line}", flush=True)


def die(last: str, *, code: int = 1) -> None:
    """End like vLLM: the core's own trace first, then the server's that only points at it."""
    sys.stdout.flush()
    pid, stamp = os.getpid(), time.strftime("%m-%d %H:%M:%S")
    head = f"(EngineCore pid={pid}) ERROR {stamp} [core.py:1100]"
    for line in ("EngineCore encountered a fatal error.", "Traceback (most recent call last):", f"{last}"):
        print(f"{head} {line}", file=sys.stderr)
    sys.stderr.flush()
    os._exit(code)


def die_loading() -> None:
    """Memory runs out while the weights are loaded; the last line says nothing about it."""
    pid, stamp = os.getpid(), time.strftime("%m-%d %H:%M:%S")
    head = f"(EngineCore pid={pid}) ERROR {stamp} [core.py:1143]"
    oom = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 130.00 MiB. GPU 0 has a total capacity of 11.60 "
        "GiB of which 97.12 MiB is free. Including non-PyTorch memory, this process has 11.49 GiB memory in use. Of "
        "the allocated memory 11.21 GiB is allocated by PyTorch, and 12.31 MiB is reserved by PyTorch but unallocated."
    )
    for line in (
        "EngineCore failed to start.",
        "Traceback (most recent call last):",
        '  File "/venv/lib/python3.11/site-packages/vllm/v1/engine/core.py", line 1117, in run_engine_core',
        "    engine_core = EngineCoreProc(*args, engine_index=dp_rank, **kwargs)",
        '  File "/venv/lib/python3.11/site-packages/vllm/v1/worker/gpu_model_runner.py", line 4996, in load_model',
        "    self.model = model_loader.load_model(",
        '  File "/venv/lib/python3.11/site-packages/vllm/model_executor/models/utils.py", line 642, in make_layers',
        '    [maybe_offload_to_cpu(layer_fn(prefix=f"{prefix}.{idx}"))',
        oom,
    ):
        print(f"{head} {line}", file=sys.stderr)
    print(f"(APIServer pid={pid}) Traceback (most recent call last):", file=sys.stderr)
    print(
        f"(APIServer pid={pid}) RuntimeError: Engine core initialization failed. See root cause above. "
        "Failed core proc(s): {'EngineCore_0': 1}",
        file=sys.stderr,
    )
    sys.stderr.flush()
    os._exit(1)


def start_log(options: Options, start_s: float) -> None:
    """The phases of a start on the CPU, spread over `start_s`."""

    def pause() -> None:
        time.sleep(start_s / 6)

    log(f"vLLM API server version {options.version}", place="api_utils.py:347")
    log(
        f"non-default args: {{'host': {options.host!r}, 'port': {options.port}, 'model': {options.model!r}}}",
        place="api_utils.py:286",
    )
    pause()
    log("Resolved architecture: LlamaForCausalLM", place="model.py:733")
    log(f"Using max model len {options.context}", place="model.py:2152")
    pause()
    log(
        f"Initializing a V1 LLM engine (v{options.version}) with config: model={options.model!r}",
        source="EngineCore",
        place="core.py:133",
    )
    log(f"Starting to load model {options.model}...", source="Worker", place="cpu_model_runner.py:68")
    shards = "Loading safetensors checkpoint shards: "
    print(f"{shards}  0% Completed | 0/2 [00:00<?, ?it/s]", file=sys.stderr, flush=True)
    pause()
    print(f"{shards} 50% Completed | 1/2 [00:01<00:01,  1.00s/it]", file=sys.stderr, flush=True)
    if "die-load" in options.faults:
        die_loading()
    pause()
    print(f"{shards}100% Completed | 2/2 [00:02<00:00,  1.00s/it]", file=sys.stderr, flush=True)
    log(f"Loading weights took {start_s / 3:.2f} seconds", source="Worker", place="default_loader.py:501")
    log(
        f"Model loading took 0.25 GiB memory and {start_s / 2:.6f} seconds",
        source="Worker",
        place="gpu_model_runner.py:5088",
    )
    while "never-ready" in options.faults:
        time.sleep(0.2)
    pause()
    log(
        f"CPU KV cache size: 46,592 tokens, Maximum concurrency for {options.context:,} tokens per request: "
        f"{46592 / options.context:.2f}x",
        source="EngineCore",
        place="kv_cache_utils.py:2327",
    )
    pause()
    log(
        f"init engine (profile, create kv cache, warmup model) took {start_s:.2f} s",
        source="EngineCore",
        place="core.py:402",
    )
    log(f"Starting vLLM server on http://{options.host}:{options.port}", place="entry.py:140")


def start_log_of_sglang(options: Options, start_s: float) -> None:
    """Lines of SGLang 0.5.23 on one CUDA card."""
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    lines = (
        f"server_args=ServerArgs(model_path={options.model!r}, host={options.host!r}, port={options.port})",
        "Attention backend not specified. Use fa3 backend by default.",
        "Init torch distributed ends. elapsed=0.10 s, mem usage=0.45 GB",
        "Load weight begin. avail mem=78.50 GB",
        "Loading weights took 0.10 seconds",
        "Load weight end. elapsed=0.20 s, type=Qwen3ForCausalLM, quant=None, avail mem=62.90 GB, mem usage=15.60 GB.",
        "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 361234, K size: 24.80 GB, V size: 24.80 GB",
        "Capture decode CUDA graph begin. backend=full, num_tokens_per_req=1, avail mem=11.20 GB",
    )
    last = (
        "max_total_num_tokens=361234, chunked_prefill_size=8192, max_prefill_tokens=16384, "
        f"max_running_requests={options.slots}, context_len={options.context}, available_gpu_mem=10.40 GB"
    )
    for line in (*lines, last):
        time.sleep(start_s / len(lines))
        print(f"[{stamp}] {line}", flush=True)


def run(options: Options, *, start_s: float) -> None:
    """Start slowly, then serve until the end."""
    if "exit-3" in options.faults:
        os._exit(3)
    signal.signal(signal.SIGTERM, signal.SIG_DFL if "never-ready" in options.faults else lambda *_: os._exit(0))
    (start_log_of_sglang if options.face == "sglang" else start_log)(options, start_s)
    engine = FakeEngine(options)
    print(
        f"INFO:     Started server process [{os.getpid()}]\nINFO:     Waiting for application startup.\n"
        "INFO:     Application startup complete.",
        flush=True,
    )
    if engine.sglang:
        print(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] The server is fired up and ready to roll!", flush=True)
    engine.server.serve_forever(poll_interval=0.05)


def read_options(argv: list[str], env: dict[str, str]) -> tuple[Options, list[str]]:
    parser = argparse.ArgumentParser(prog="engine", allow_abbrev=False)
    parser.add_argument("model_tag", nargs="?", default="")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--model", default="")
    parser.add_argument("--served-model-name", nargs="+", default=[])
    parser.add_argument("--max-model-len", type=int, default=0)
    parser.add_argument("--max-num-seqs", type=int, default=8)
    parser.add_argument("--reasoning-parser", default="")
    parser.add_argument("--default-chat-template-kwargs", type=json.loads, default={})
    parser.add_argument("--api-key", default="")
    parser.add_argument("--fault", action="append", default=[])
    parser.add_argument("--version", action="version", version=VERSION)
    known, rest = parser.parse_known_args(argv)
    model = known.model or known.model_tag
    faults = [name for text in [*known.fault, env.get("FAKE_ENGINE_FAULT", "")] for name in text.split(",") if name]
    return Options(
        host=known.host,
        port=known.port,
        model=model,
        served_name=(known.served_model_name or [model or "toy"])[0],
        context=known.max_model_len or context_of(model),
        slots=known.max_num_seqs,
        parser="" if known.reasoning_parser == "none" else known.reasoning_parser,
        template_defaults=known.default_chat_template_kwargs,
        key=known.api_key or env.get("VLLM_API_KEY", ""),
        faults=frozenset(faults),
        token_s=float(env.get("FAKE_ENGINE_TOKEN_S", "0.0005")),
    ), rest


def context_of(model: str) -> int:
    config = Path(model) / "config.json"
    return int(json.loads(config.read_text()).get("max_position_embeddings", 2048)) if config.is_file() else 2048


def main() -> None:
    env = dict(os.environ)
    options, rest = read_options(sys.argv[1:], env)
    if rest and "exit-3" not in options.faults:
        log(f"flags without effect here: {' '.join(rest)}")
    run(options, start_s=float(env.get("FAKE_ENGINE_START_S", "0.2")))


if __name__ == "__main__":
    main()
