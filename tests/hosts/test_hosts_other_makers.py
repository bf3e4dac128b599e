"""Accelerators of other makers: named by what the bus says, unsupported, and never a GPU."""

import pytest

from selfhost.hosts.detect import detect
from selfhost.hosts.pci_table import table
from selfhost.shapes.host import Known, Support, Vendor
from tests.hosts.fixture_machines import machine


def on_bus(vendor: str, device: str, kind: str = "0x120000") -> dict[str, str]:
    base = "/sys/bus/pci/devices/0000:03:00.0"
    return {f"{base}/class": kind, f"{base}/vendor": f"0x{vendor}", f"{base}/device": f"0x{device}"}


@pytest.mark.parametrize(
    ("vendor", "device", "kind", "name"),
    # Vendor ids and names: https://pci-ids.ucw.cz/
    [
        ("1da3", "1020", "0x120000", "Habana Labs (Intel Gaudi) accelerator 1da3:1020"),
        ("1e52", "401e", "0x120000", "Tenstorrent accelerator 1e52:401e"),
        ("19e5", "d802", "0x120000", "Huawei Ascend accelerator 19e5:d802"),
        ("17cb", "a100", "0x0b4000", "Qualcomm Cloud AI accelerator 17cb:a100"),
        ("1ed5", "0400", "0x030200", "Moore Threads accelerator 1ed5:0400"),
        ("1ac1", "089a", "0x088000", "Google Coral accelerator 1ac1:089a"),
        ("1d0f", "7164", "0x088000", "Amazon Neuron accelerator 1d0f:7164"),
        ("cabc", "0370", "0x120000", "Cambricon accelerator cabc:0370"),
        ("1e60", "2864", "0x088000", "Hailo accelerator 1e60:2864"),
        ("beef", "0001", "0x120000", "unknown maker beef accelerator beef:0001"),
    ],
)
def test_it_is_named_and_no_engine_uses_it(vendor: str, device: str, kind: str, name: str) -> None:
    found = detect(machine(files=on_bus(vendor, device, kind)))
    (card,) = found.accelerators
    assert (card.name, card.vendor, card.support) == (name, Vendor.OTHER, Support.UNSUPPORTED)
    assert card.support_reason == "not supported by a current engine"
    assert found.usable_accelerators == ()


@pytest.mark.parametrize(
    ("vendor", "device", "kind"),
    # A network card and a screen of those makers, Intel QuickAssist, the memory mover SDXI, Hygon's root port.
    [
        ("19e5", "1822", "0x020000"),
        ("19e5", "1711", "0x030000"),
        ("8086", "4940", "0x0b4000"),
        ("1022", "1594", "0x120100"),
        ("1d94", "1453", "0x060400"),
        ("1d0f", "1111", "0x030000"),
    ],
)
def test_what_the_same_makers_build_besides_is_none(vendor: str, device: str, kind: str) -> None:
    assert detect(machine(files=on_bus(vendor, device, kind))).accelerators == ()


def test_one_that_a_guest_has_is_not_broken() -> None:
    links = {"/sys/bus/pci/devices/0000:03:00.0/driver": "../../drivers/vfio-pci"}
    (card,) = detect(machine(files=on_bus("1e52", "401e"), links=links)).accelerators
    assert card.usable == Known(value=False, how="set aside for a virtual machine (vfio-pci)")


def test_every_maker_stands_once_in_the_table() -> None:
    vendors = [row["vendor"] for row in table()["maker"]["rows"]]
    assert len(vendors) == len(set(vendors))
