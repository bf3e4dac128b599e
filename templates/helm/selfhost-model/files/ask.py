"""`helm test`: asks the server what a client would. One line a check; the exit status is 1 where one failed."""

import json
import os
import sys
import urllib.error
import urllib.request

url, model = os.environ["SELFHOST_URL"], os.environ["SELFHOST_MODEL"]
key = os.environ.get("SELFHOST_KEY", "")
field = os.environ["SELFHOST_FIELD"]
extra = json.loads(os.environ["SELFHOST_REQUEST"])
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
failed = []


def ask(path, body=None, bearer=key, seconds=30):
    """The status and the answer, read as JSON where it is JSON."""
    headers = {"Content-Type": "application/json"}
    if bearer:
        headers["Authorization"] = f"Bearer {bearer}"
    data = None if body is None else json.dumps(body).encode()
    try:
        with direct.open(urllib.request.Request(url + path, data, headers), timeout=seconds) as answer:
            status, text = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read()
    except OSError as error:
        status, text = 0, str(error).encode()
    try:
        return status, json.loads(text)
    except ValueError:
        return status, text.decode(errors="replace")[:300]


def check(name, good, seen):
    print(f"{'ok    ' if good else 'FAILED'} {name}{'' if good else f': {seen}'}", flush=True)
    if not good:
        failed.append(name)
    return good


status, answer = ask("/health")
if not check("/health answers 200", status == 200, f"{status or 'no answer'} {answer}"):
    sys.exit("the server is not ready; ask again when its pod is")

status, answer = ask("/v1/models")
cards = answer.get("data", []) if isinstance(answer, dict) else []
served = [one["id"] for one in cards]
check(f"/v1/models names {model}", model in served, f"{status} {served or answer}")
context = next((one.get("max_model_len") for one in cards if one["id"] == model), None) or 4096

request = {
    "model": model,
    "messages": [{"role": "user", "content": "What is the capital of France? Answer with one word."}],
    "temperature": 0,
    "max_tokens": max(16, min(2048, context // 2)),
    **extra,
}
status, answer = ask("/v1/chat/completions", request, seconds=240)
message, end = {}, ""
if check("a completion comes back", status == 200, f"{status} {answer}"):
    message, end = answer["choices"][0]["message"], answer["choices"][0]["finish_reason"]
    said = (message.get("content") or "").strip()
    thoughts = (message.get(field) or "").strip() if field else ""
    cut = end == "length" and thoughts
    check("the completion has text", said or cut, f"finish_reason {end}, content empty")
    check("no thoughts lie in the text", "<think>" not in said and "</think>" not in said, said[:200])
    if os.environ["SELFHOST_THINKS"] == "true":
        check(f"thoughts are in message.{field}", thoughts, f"fields {sorted(message)}")
    if os.environ["SELFHOST_THINKS"] == "false" and field:
        check("no thoughts come back", not thoughts, thoughts[:200])
    print(f"       {end}: {said[:100]!r}", flush=True)

if key:
    status, answer = ask("/v1/models", bearer="")
    check("without the key it answers 401", status == 401, f"{status} {answer}")
status, answer = ask("/v1/no-such-path")
check("a path that does not exist answers 404", status == 404, f"{status} {answer}")
sys.exit(f"{len(failed)} of the checks failed" if failed else 0)
