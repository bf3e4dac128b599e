"""Stands for `systemctl` and `journalctl` where there is no systemd: `stand_in_systemd.py systemctl|journalctl …`.

Units are those of podman's real generator. `start` runs the unit's own ExecStart, and that of the units it requires,
without what only systemd can give: control groups of the unit (`--cgroups=split`), the readiness socket (`--sdnotify`),
the journal as log driver, and `-d`, so that the command's end is the unit's end. Restart= is not obeyed.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

HOME = Path(os.environ["STAND_IN_SYSTEMD"])
LIMIT_S = 30.0


def main() -> int:
    program, *words = sys.argv[1:]
    words = [word for word in words if word not in ("--user", "--no-pager", "--quiet", "--output=cat")]
    if program == "journalctl":
        return journal(words)
    verb, *rest = words
    if verb == "show":
        return show(rest)
    return {"daemon-reload": reload, "start": start, "stop": stop, "reset-failed": forget, "_run": supervise}[verb](
        rest
    )


def reload(_: list[str]) -> int:
    done = subprocess.run([os.environ["STAND_IN_QUADLET"], "--dryrun"], capture_output=True, text=True)
    units, name = {}, ""
    for line in done.stdout.splitlines(keepends=True):
        if line.startswith("---") and line.rstrip().endswith("---"):
            name = line.strip()[3:-3]
            units[name] = ""
        elif name:
            units[name] += line
    (HOME / "units.json").write_text(json.dumps(units))
    return 0


def units() -> dict[str, str]:
    path = HOME / "units.json"
    return json.loads(path.read_text()) if path.exists() else {}


def setting(text: str, key: str) -> list[str]:
    return [line.partition("=")[2] for line in text.splitlines() if line.startswith(f"{key}=")]


def state_file(unit: str) -> Path:
    return HOME / f"{unit}.json"


def state(unit: str) -> dict[str, object]:
    path = state_file(unit)
    return json.loads(path.read_text()) if path.exists() else {"active": "inactive", "code": 0, "pid": 0}


def show(words: list[str]) -> int:
    if words == ["--property=Version"]:
        print("Version=252 (stand-in)")
        return 0
    unit = words[-1]
    now = state(unit)
    values = {
        "LoadState": "loaded" if unit in units() else "not-found",
        "ActiveState": now["active"],
        "SubState": "dead",
        "ExecMainCode": "1",
        "ExecMainStatus": str(now["code"]),
        "NRestarts": "0",
    }
    for name in words[0].removeprefix("--property=").split(","):
        if name in values:
            print(f"{name}={values[name]}")
    return 0


def argv_of(unit: str) -> list[str]:
    words = shlex.split(setting(units()[unit], "ExecStart")[-1])
    found, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word == "--log-driver":
            skip = True
        elif word not in ("--cgroups=split", "--sdnotify=conmon", "-d") and not word.startswith("--log-driver="):
            plain = word.replace("%t", str(HOME)).replace("%N", unit.removesuffix(".service")).replace("%%", "%")
            found.append("podman" if plain == "/usr/bin/podman" else plain)
    return found


def start(words: list[str]) -> int:
    unit = words[0]
    if unit not in units():
        print(f"Failed to start {unit}: Unit {unit} not found.", file=sys.stderr)
        return 5
    for needed in [one for line in setting(units()[unit], "Requires") for one in line.split()]:
        if needed in units() and not made(argv_of(needed)):
            return 1
    (HOME / f"{unit.removesuffix('.service')}.cid").unlink(missing_ok=True)
    state_file(unit).write_text(json.dumps({"active": "activating", "code": 0, "pid": 0}))
    subprocess.Popen([sys.executable, __file__, "systemctl", "_run", unit], start_new_session=True,
                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    deadline = time.monotonic() + LIMIT_S
    container = argv_of(unit)[argv_of(unit).index("--name") + 1]
    while time.monotonic() < deadline:
        if state(unit)["active"] == "failed":
            print(f"Job for {unit} failed.", file=sys.stderr)
            return 1
        if state(unit)["active"] == "inactive":
            return 0
        done = subprocess.run(["podman", "inspect", "--format", "{{.State.Status}}", container], capture_output=True)
        if done.stdout.strip() == b"running":
            return 0
        time.sleep(0.1)
    return 1


def made(argv: list[str]) -> bool:
    """podman 4.3 does not know `network create --ignore`, nor that of volumes, which the generator of 5.4 writes."""
    kind = "volume" if "volume" in argv[:3] else "network"
    if subprocess.run(["podman", kind, "exists", argv[-1]]).returncode == 0:
        return True
    words = [word for word in argv if word != "--ignore"]
    return subprocess.run(words, stdout=subprocess.DEVNULL).returncode == 0


def supervise(words: list[str]) -> int:
    """What systemd's manager is for a service: its parent, who sees how it ends and reads what it says."""
    unit = words[0]
    process = subprocess.Popen(argv_of(unit), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    state_file(unit).write_text(json.dumps({"active": "active", "code": 0, "pid": process.pid, "own": os.getpid()}))
    with (HOME / f"{unit}.journal").open("a") as out:
        for line in process.stdout or ():
            out.write(f"{time.time()}\t{line}")
            out.flush()
    code = process.wait()
    ended = {"active": "failed" if code not in (0, 143) else "inactive", "code": code, "pid": 0}
    state_file(unit).write_text(json.dumps(ended))
    return 0


def stop(words: list[str]) -> int:
    unit = words[0]
    text = units().get(unit, "")
    if text and state(unit)["active"] in ("active", "activating"):
        for line in setting(text, "ExecStop"):
            command = line.replace("%t", str(HOME)).replace("%N", unit.removesuffix(".service"))
            subprocess.run(["podman", *shlex.split(command)[1:]], capture_output=True)
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline and state(unit)["active"] == "active":
            time.sleep(0.05)
        if pid := state(unit)["pid"]:
            os.kill(int(str(pid)), signal.SIGKILL)
    return 0


def forget(words: list[str]) -> int:
    state_file(words[0]).unlink(missing_ok=True)
    return 0


def journal(words: list[str]) -> int:
    unit = words[words.index("--unit") + 1]
    options = dict(word.removeprefix("--").partition("=")[::2] for word in words if word.startswith("--"))
    path = HOME / f"{unit}.journal"
    text = path.read_bytes() if path.exists() else b""
    begin = int(options.get("after-cursor") or 0)
    lines = text[begin:].decode().splitlines()
    since = float(options.get("since", "@0").removeprefix("@"))
    shown = [line.partition("\t")[2] for line in lines if float(line.partition("\t")[0]) >= since]
    if "lines" in options:
        shown = shown[-int(options["lines"]) :]
    for line in shown:
        print(line)
    if "show-cursor" in options:
        print(f"-- cursor: {len(text)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
