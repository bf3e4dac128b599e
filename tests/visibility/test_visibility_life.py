"""How a container lives, as each form of text says it: health, labels, log, limits, its first process and its end."""

import json

import pytest

from selfhost.shapes.workload import Health, Ulimit, Workload
from selfhost.visibility.files import NO_FILES
from selfhost.visibility.readers import compose, inspect, quadlet, run
from selfhost.visibility.readers.durations import seconds
from selfhost.visibility.readers.life import check_words, line_words

HEALTH = Health(test=("curl", "-f", "http://x/health"), interval_s=15, timeout_s=5, retries=4, start_period_s=90)
COMPOSE = """services:
  a:
    image: x
    init: true
    read_only: true
    stop_grace_period: 1m30s
    env_file: [/srv/a.env]
    healthcheck:
      test: ["CMD", "curl", "-f", "http://x/health"]
      interval: 15s
      timeout: 5s
      retries: 4
      start_period: 1m30s
    labels: ["a.b=1"]
    logging: {driver: json-file, options: {max-size: 10m}}
    ulimits:
      memlock: -1
      nofile: {soft: 1, hard: 2}
    volumes: ["cache:/c"]
networks: {default: {name: net}}
volumes: {cache: {name: own}}
"""
RUN = """docker run --init --read-only --stop-timeout 90 --env-file /srv/a.env --health-cmd 'curl -f http://x/health' \\
  --health-interval=15s --health-timeout 5s --health-retries 4 --health-start-period 1m30s --label a.b=1 \\
  --log-driver json-file --log-opt max-size=10m --ulimit memlock=-1 --ulimit nofile=1:2 -v own:/c --network net x
"""
QUADLET = """[Container]
Image=x
RunInit=true
ReadOnly=yes
StopTimeout=90
EnvironmentFile=/srv/a.env
HealthCmd=curl -f http://x/health
HealthInterval=15s
HealthTimeout=5s
HealthRetries=4
HealthStartPeriod=1m30s
Label=a.b=1
LogDriver=json-file
LogOpt=max-size=10m
Ulimit=memlock=-1:-1
PodmanArgs=--ulimit nofile=1:2
Volume=own:/c
Network=net
"""
INSPECT = json.dumps(
    [
        {
            "Id": "0" * 64,
            "Name": "/a",
            "Config": {
                "Image": "x",
                "StopTimeout": 90,
                "Labels": {"a.b": "1"},
                "Healthcheck": {
                    "Test": ["CMD", "curl", "-f", "http://x/health"],
                    "Interval": 15_000_000_000,
                    "Timeout": 5_000_000_000,
                    "Retries": 4,
                    "StartPeriod": 90_000_000_000,
                },
            },
            "HostConfig": {
                "Init": True,
                "ReadonlyRootfs": True,
                "NetworkMode": "net",
                "LogConfig": {"Type": "json-file", "Config": {"max-size": "10m"}},
                "Ulimits": [
                    {"Name": "memlock", "Soft": -1, "Hard": -1},
                    {"Name": "nofile", "Soft": 1, "Hard": 2},
                ],
                "RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": 3},
            },
            "Mounts": [{"Type": "volume", "Name": "own", "Destination": "/c", "RW": True}],
        }
    ],
    indent=1,
)
TEXTS = {"compose": COMPOSE, "run": RUN, "quadlet": QUADLET, "inspect": INSPECT}


def read(form: str, text: str) -> Workload:
    reader = {"compose": compose, "run": run, "quadlet": quadlet, "inspect": inspect}[form]
    return reader.read(text, path="it", files=NO_FILES)[0]  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize("form", TEXTS)
def test_every_form_says_the_same(form: str) -> None:
    found = read(form, TEXTS[form])
    assert (found.init, found.read_only, found.stop_grace_s) == (True, True, 90)
    assert found.health == HEALTH
    assert found.labels == {"a.b": "1"}
    assert (found.log_driver, found.log_options) == ("json-file", {"max-size": "10m"})
    assert found.ulimits == (Ulimit(name="memlock", soft=-1, hard=-1), Ulimit(name="nofile", soft=1, hard=2))
    assert found.network == "net"
    assert [(mount.source, mount.kind) for mount in found.mounts] == [("own", "volume")]
    assert found.env_files == (() if form == "inspect" else ("/srv/a.env",))
    for key in ("health", "labels.a.b", "log_driver", "ulimits.nofile", "stop_grace_s"):
        assert key in found.at, key


def test_the_tries_of_a_restart_are_part_of_it() -> None:
    assert read("inspect", INSPECT).restart == "on-failure:3"
    unit = QUADLET + "[Service]\nRestart=on-failure\n"
    assert read("quadlet", unit).restart == "on-failure"
    assert read("quadlet", unit + "[Unit]\nStartLimitBurst=3\n").restart == "on-failure:3"


def test_nothing_said_is_nothing_read() -> None:
    for form, text in (("compose", "services: {a: {image: x}}\n"), ("run", "docker run x\n")):
        found = read(form, text)
        assert (found.init, found.read_only, found.stop_grace_s, found.health) == (False, False, None, None)
        assert (found.labels, found.log_driver, found.ulimits, found.env_files) == ({}, "", (), ())


@pytest.mark.parametrize("said", ["test: [NONE]", "disable: true", "interval: 5s"])
def test_a_check_that_is_switched_off_or_has_no_command_is_none(said: str) -> None:
    assert read("compose", f"services:\n  a:\n    image: x\n    healthcheck:\n      {said}\n").health is None


def test_in_a_unit_two_dollars_are_one_in_every_value() -> None:
    unit = '[Container]\nImage=x\nEnvironment="A=$$x %%h"\nLabel=b=$$y\nPodmanArgs=--env C=$$z\nExec=a $$b\n'
    found = read("quadlet", unit)
    assert found.env == {"A": "$x %h", "C": "$z"}
    assert (found.labels, found.argv) == ({"b": "$y"}, ("a", "$b"))


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("15s", 15),
        ("1m30s", 90),
        ("1h", 3600),
        ("500ms", 0.5),
        ("90", 90),
        ("1.5m", 90),
        ("", None),
        ("5x", None),
        ("s", None),
    ],
)
def test_lengths_of_time(text: str, length: float | None) -> None:
    assert seconds(text) == length


def test_a_line_that_needs_a_shell_is_that_shells() -> None:
    assert line_words("curl -f x || exit 1") == ("/bin/sh", "-c", "curl -f x || exit 1")
    assert line_words("curl -f x") == ("curl", "-f", "x")
    assert check_words('["CMD", "a b", "c"]') == ("a b", "c")
    assert check_words("[ -f /x ]") == ("/bin/sh", "-c", "[ -f /x ]")
