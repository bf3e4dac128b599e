"""nvidia-smi: asked with a time-out, in CSV and XML; of a recorded machine, in every form that was recorded.

It may never answer, it writes its errors to stdout, and its exit code may be 0 without a card or another with cards.
"""

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from selfhost.core.recorded import Recorded
from selfhost.core.system import Completed, System
from selfhost.hosts import nvidia_smi_csv, nvidia_smi_text, nvidia_smi_xml
from selfhost.hosts.nvidia_failure import library_of, lost_cards, meaning
from selfhost.hosts.nvidia_reading import NOT_SAID, Answer, Reading, join, version
from selfhost.shapes.host import Fact, Known, Tenant, Unknown

# A hung driver may cost 5 s in all; the tenths are for what was asked before.
TIMEOUT_S = 4.8
# Under WSL2 and in the docker snap the program is not on PATH.
PROGRAMS = ("nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi", "/var/lib/snapd/hostfs/usr/bin/nvidia-smi")
FIELDS = (
    "index",
    "name",
    "uuid",
    "pci.bus_id",
    "memory.total",
    "memory.free",
    "compute_cap",
    "driver_version",
    "mig.mode.current",
)
QUERY = (f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits")
XML = ("-q", "-x")
LIST = ("-L",)
PLAIN: tuple[str, ...] = ()
# An installed program answers the first that it knows; the rest is for what that one left open.
_IN_ORDER = (QUERY, XML, LIST, PLAIN)
_ANSWERS_WITH_CARDS = "-q -x", "--query-gpu", "-L", "-q", ""


@dataclass(slots=True)
class _Heard:
    """What all forms said, put together as they come."""

    readings: list[Reading] = field(default_factory=list)
    tenants: list[tuple[str, Tenant]] = field(default_factory=list)
    failure: str = ""
    meaning: str = ""
    remarks: list[str] = field(default_factory=list)
    driver: str = ""
    driver_how: str = ""
    library: str = ""
    cuda: Fact[str] = NOT_SAID
    faults: dict[str, str] = field(default_factory=dict)
    is_hung: bool = False
    serves_vgpus: bool = False

    def fail(self, text: str, means: str = "") -> None:
        if not self.failure:
            self.failure, self.meaning = text, means

    def say_versions(self, driver: str, cuda: str, library: str, how: str) -> None:
        if driver and not self.driver:
            self.driver, self.driver_how = driver, how
        if cuda and not isinstance(self.cuda, Known):
            self.cuda = Known(cuda, how) if version(cuda) else Unknown(f"{how} says CUDA Version: {cuda}")
        self.library = self.library or library


def recorded(system: System) -> tuple[tuple[str, ...], ...]:
    """Commands of nvidia-smi that this machine was recorded with; none for a machine that is there."""
    if not isinstance(system, Recorded):
        return ()
    return tuple(argv for argv in system.argvs if posixpath.basename(argv[0]) in ("nvidia-smi", "nvidia-smi.exe"))


def ask(system: System) -> Answer:
    """Every card that nvidia-smi lists. One hung call costs TIMEOUT_S, and nothing is asked after it."""
    heard = _Heard()
    is_there = any(_ask_program(system, program, heard) for program in PROGRAMS)
    for argv in recorded(system):
        if argv[1:] not in _IN_ORDER or argv[0] not in PROGRAMS:
            done = system.run(argv, timeout_s=TIMEOUT_S)
            is_there = is_there or not _is_missing(done)
            _hear(heard, done, argv)
    if not is_there:
        heard.fail("nvidia-smi is not installed")
    return _answer(heard)


def _ask_program(system: System, program: str, heard: _Heard) -> bool:
    """False when `program` is not there."""
    is_there = False
    for arguments in _IN_ORDER:
        if is_there and _is_told(heard, arguments) and not isinstance(system, Recorded):
            continue
        argv = (program, *arguments)
        done = system.run(argv, timeout_s=TIMEOUT_S)
        if _is_missing(done):
            continue
        is_there = True
        _hear(heard, done, argv)
        if heard.is_hung:
            break
    return is_there


def _is_told(heard: _Heard, arguments: tuple[str, ...]) -> bool:
    """Whether an installed program need not be asked in this form: the list is for MIG, the table for failures."""
    if heard.failure:
        return True
    if arguments == LIST:
        return bool(heard.readings) and not any(card.mig == "Enabled" for card in heard.readings)
    return arguments == PLAIN and bool(heard.readings)


def _is_missing(done: Completed) -> bool:
    return done.missing or done.rc == 127


def _hear(heard: _Heard, done: Completed, argv: Sequence[str]) -> None:
    """Take what is usable, whatever the exit code is; then what the exit code and the text say."""
    if done.timed_out:
        heard.is_hung = True
        said = f"nvidia-smi gave no answer within {TIMEOUT_S:.0f} s"
        heard.fail(said, "the driver gives no answer")
        heard.remarks.append(said)
        return
    if _is_missing(done):
        return
    form, read = _reader(argv)
    before = len(heard.readings)
    if read is not None:
        read(heard, done.stdout, argv)
    heard.faults |= lost_cards(f"{done.stdout}\n{done.stderr}")
    heard.library = heard.library or library_of(done.stdout)
    if len(heard.readings) == before and form in _ANSWERS_WITH_CARDS:
        _hear_failure(heard, done, form)
    elif done.rc != 0 and form in _ANSWERS_WITH_CARDS:
        said = _complaint(done) or meaning(done.rc, "")
        heard.remarks.append(f"nvidia-smi {form} ended with {done.rc}{f': {said}' if said else ''}")


def _hear_failure(heard: _Heard, done: Completed, form: str) -> None:
    line = _first_line(done)
    if "not a valid field" in done.stdout:
        return  # a driver that does not know one of the fields still speaks XML
    if done.rc != 0:
        means = meaning(done.rc, line)
        heard.fail(f"nvidia-smi ended with {done.rc}: {line or means or 'no text'}", means)
    elif heard.remarks:
        heard.fail(heard.remarks[-1], "its output ends early")
    elif form or "No devices" in line or "failed" in line.lower():
        heard.fail(f"nvidia-smi lists no card{f': {line[:120]}' if line else ''}", meaning(0, line))


def _first_line(done: Completed) -> str:
    # Its error text goes to stdout; stderr is for the odd wrapper.
    lines = (line.strip() for line in f"{done.stdout}\n{done.stderr}".splitlines())
    return next((line for line in lines if line and not line.startswith("<")), "")


def _complaint(done: Completed) -> str:
    """Of an output with cards in it, the first line that is a sentence about trouble."""
    lines = (line.strip() for line in f"{done.stdout}\n{done.stderr}".splitlines())
    trouble = re.compile(r"Unable|WARNING|[Ff]ailed|corrupted|lost|error:", re.ASCII)
    return next((line[:160] for line in lines if trouble.search(line) and not line.startswith("<")), "")


def _read_csv(heard: _Heard, text: str, argv: Sequence[str]) -> None:
    found = nvidia_smi_csv.cards(text, nvidia_smi_csv.fields_of(argv, "--query-gpu"))
    heard.readings += found
    for card in found:
        heard.say_versions(card.driver, "", "", "nvidia-smi driver_version")


def _read_apps(heard: _Heard, text: str, argv: Sequence[str]) -> None:
    heard.tenants += nvidia_smi_csv.tenants(text, nvidia_smi_csv.fields_of(argv, "--query-compute-apps"))


def _read_xml(heard: _Heard, text: str, argv: Sequence[str]) -> None:
    del argv
    found = nvidia_smi_xml.read(text)
    heard.readings += found.cards
    heard.say_versions(found.driver, found.cuda, "", "nvidia-smi -q -x")
    heard.serves_vgpus = heard.serves_vgpus or found.serves_vgpus
    heard.remarks += [found.remark] if found.remark else []


def _read_query(heard: _Heard, text: str, argv: Sequence[str]) -> None:
    del argv
    heard.readings += nvidia_smi_text.from_query(text)
    heard.serves_vgpus = heard.serves_vgpus or "vGPU Driver Capability" in text
    heard.say_versions(*nvidia_smi_text.versions(text), "nvidia-smi -q")


def _read_list(heard: _Heard, text: str, argv: Sequence[str]) -> None:
    del argv
    heard.readings += nvidia_smi_text.from_list(text)


def _read_table(heard: _Heard, text: str, argv: Sequence[str]) -> None:
    del argv
    heard.readings += nvidia_smi_text.from_table(text)
    heard.say_versions(*nvidia_smi_text.versions(text), "nvidia-smi")


def _read_versions(heard: _Heard, text: str, argv: Sequence[str]) -> None:
    del argv
    heard.say_versions(*nvidia_smi_text.versions(text), "nvidia-smi --version")


def _read_instances(heard: _Heard, text: str, argv: Sequence[str]) -> None:
    del argv
    heard.readings += [
        Reading(tool="nvidia-smi", index=card, mig="Enabled", slices=slices)
        for card, slices in nvidia_smi_text.from_instances(text).items()
    ]


_Read = Callable[[_Heard, str, Sequence[str]], None]


def _reader(argv: Sequence[str]) -> tuple[str, _Read | None]:
    """The form that a command line asks for, and who reads it; None for one that says nothing about cards."""
    given = [part.partition("=")[0] for part in argv[1:]]
    if not given:
        return "", _read_table
    return next(((form, read) for words, form, read in _FORMS if all(word in given for word in words)), ("other", None))


# Words that are all there; the first row that fits.
_FORMS: tuple[tuple[tuple[str, ...], str, _Read], ...] = (
    (("--query-gpu",), "--query-gpu", _read_csv),
    (("--query-compute-apps",), "apps", _read_apps),
    (("mig", "-lgi"), "mig -lgi", _read_instances),
    (("mig", "-lci"), "mig -lci", _read_instances),
    (("-q", "-x"), "-q -x", _read_xml),
    (("-x", "-q"), "-q -x", _read_xml),
    (("--query", "--xml-format"), "-q -x", _read_xml),
    (("-q", "--xml-format"), "-q -x", _read_xml),
    (("-qx",), "-q -x", _read_xml),
    (("-q",), "-q", _read_query),
    (("--query",), "-q", _read_query),
    (("-L",), "-L", _read_list),
    (("--list-gpus",), "-L", _read_list),
    (("--version",), "--version", _read_versions),
)


def _answer(heard: _Heard) -> Answer:
    joined = join(heard.readings)
    cards = tuple(_with_tenants(card, heard.tenants, is_only=len(joined) == 1) for card in joined)
    return Answer(
        cards=cards,
        failure="" if cards else heard.failure,
        meaning="" if cards else heard.meaning,
        remarks=tuple(dict.fromkeys(heard.remarks)),
        driver=heard.driver,
        driver_how=heard.driver_how,
        library=heard.library,
        cuda=heard.cuda,
        faults=heard.faults,
        is_hung=heard.is_hung,
        serves_vgpus=heard.serves_vgpus,
    )


def _with_tenants(card: Reading, tenants: Sequence[tuple[str, Tenant]], *, is_only: bool) -> Reading:
    """Where the query did not ask for the card, processes are the only card's."""
    own = tuple(tenant for of, tenant in tenants if (of in (card.uuid, card.bus_id) if of else is_only))
    return card if card.tenants or not own else replace(card, tenants=own)
