"""Fingerprints read without gpg are those that gpg reads."""

import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("openpgp", ROOT / "playbooks" / "filter_plugins" / "openpgp.py")
assert _SPEC is not None
assert _SPEC.loader is not None
_MODULE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_MODULE)
fingerprints = _MODULE.openpgp_fingerprints


class Gpg:
    def __init__(self, home: str) -> None:
        self.home = home

    def run(self, *words: str) -> str:
        argv = [
            "gpg",
            "--homedir",
            self.home,
            "--batch",
            "--quiet",
            "--pinentry-mode",
            "loopback",
            "--passphrase",
            "",
            *words,
        ]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    def key(self, name: str, kind: str) -> str:
        """The fingerprint that gpg gives it."""
        self.run("--quick-generate-key", name, kind, "default", "never")
        rows = self.run("--list-keys", "--with-colons", name).splitlines()
        return next(row.split(":")[9] for row in rows if row.startswith("fpr:"))


@pytest.fixture
def gpg() -> Iterator[Gpg]:
    home = tempfile.mkdtemp(prefix="g")  # a short path: gpg-agent's socket lies in it
    yield Gpg(home)
    subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)
    shutil.rmtree(home, ignore_errors=True)


@pytest.mark.parametrize("kind", ["rsa2048", "ed25519"])
def test_the_fingerprint_is_the_one_that_gpg_gives(gpg, kind):
    expected = gpg.key("One <one@example.org>", kind)
    assert fingerprints(gpg.run("--armor", "--export")) == [expected]


def test_every_primary_key_of_a_file_is_seen_and_none_hides_behind_another(gpg):
    one, two = gpg.key("One <one@example.org>", "ed25519"), gpg.key("Two <two@example.org>", "ed25519")
    assert sorted(fingerprints(gpg.run("--armor", "--export"))) == sorted([one, two])


def test_a_second_block_behind_the_first_makes_it_no_key_file(gpg):
    gpg.key("One <one@example.org>", "ed25519")
    block = gpg.run("--armor", "--export")
    assert fingerprints(block + block) == []


@pytest.mark.parametrize(
    "text",
    ["", "<html>404</html>", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END PGP PUBLIC KEY BLOCK-----\n"],
)
def test_what_is_no_key_file_has_no_fingerprint(text):
    assert fingerprints(text) == []
