"""Outputs and topologies of real machines with AMD cards: what is true of each comes out, and nothing that is not."""

from pathlib import Path

from selfhost.core.recorded import Recorded
from selfhost.core.system import LocalSystem
from selfhost.hosts import amd_tools
from selfhost.hosts.vendors import amd
from selfhost.shapes.host import Fact, Known, Partitioning, Support, Unknown
from selfhost.shapes.surroundings import DriverStack
from tests.fakes.seen import cards, only
from tests.hosts.fixture_machines import FIXTURES, kfd, machine, recorded, said, tree

GIB = 2**30
MIB = 2**20


def value(fact: Fact[object]) -> object:
    return fact.value if isinstance(fact, Known) else "unknown"


def stack(of: Recorded) -> DriverStack:
    found = amd.stack(of, cards(of))
    assert found is not None
    return found


def on_bus(*addresses: str, device: str = "0x74a1") -> dict[str, str]:
    files: dict[str, str] = {}
    for address in addresses:
        base = f"/sys/bus/pci/devices/{address}"
        files |= {f"{base}/class": "0x120000", f"{base}/vendor": "0x1002", f"{base}/device": device}
    return files


def test_the_list_with_all_numbers_joins_amd_smi_and_hip() -> None:
    of = machine(said("amd-smi", "list", "-e", "--json", file="amd/amd-smi-list-e.rocm6.4.json"))
    card = only(of)
    assert (card.pci, card.uuid) == ("0000:23:00.0", "GPU-0cee36ddc4255115")
    assert card.tool_index == {"amd-smi": 0, "hip": 0}
    assert isinstance(card.openable, Unknown)
    assert isinstance(card.usable, Unknown)


def test_the_plain_list_of_the_same_card_says_the_same_without_its_hidden_ids() -> None:
    card = only(machine(said("amd-smi", "list", "-e", file="amd/amd-smi-list.rocm6.4.txt")))
    assert (card.pci, card.uuid, card.tool_index) == ("0000:23:00.0", "", {"amd-smi": 0, "hip": 0})


def test_a_bare_array_of_two_cards_is_two_cards_with_their_own_uuids() -> None:
    found = cards(machine(said("amd-smi", "list", "--json", file="amd/amd-smi-list.rocm6.2.json")))
    assert [(card.pci, card.uuid[:8]) for card in found] == [("0000:26:00.0", "8a278b72"), ("0000:46:00.0", "b475c0da")]
    assert [card.tool_index for card in found] == [{"amd-smi": 0}, {"amd-smi": 1}]


def test_static_gives_the_same_card_bare_and_wrapped_and_mb_means_mib() -> None:
    for file, driver in (("amd-smi-static.rocm6.x.json", "6.10.5"), ("amd-smi-static.rocm7.x.json", "6.12.12")):
        of = machine(said("amd-smi", "static", "--json", file=f"amd/{file}"))
        card = only(of)
        assert (card.name, card.pci, card.driver_version) == ("MI300X", "0000:05:00.0", driver)
        assert value(card.memory_total) == 196592 * MIB
        assert (value(stack(of).module), stack(of).flavour) == (driver, "dkms")


def test_the_tools_join_the_card_on_the_bus_by_address_and_not_by_order() -> None:
    text = '[{"gpu": 0, "bdf": "0000:46:00.0"}, {"gpu": 1, "bdf": "0000:26:00.0"}]'
    of = machine({"argv": ["amd-smi", "list", "--json"], "stdout": text}, files=on_bus("0000:26:00.0", "0000:46:00.0"))
    assert [(card.pci, card.tool_index) for card in cards(of)] == [
        ("0000:26:00.0", {"amd-smi": 1}),
        ("0000:46:00.0", {"amd-smi": 0}),
    ]


def test_the_table_of_amd_smi_shows_that_its_number_is_not_hips() -> None:
    of = machine(said("amd-smi", file="amd/amd-smi-default.v620.rocm7.2.txt"))
    card = only(of)
    assert (card.name, card.pci) == ("AMD Radeon Pro V620", "0000:03:00.0")
    assert card.tool_index == {"amd-smi": 0, "hip": 3}
    assert (value(card.memory_total), value(card.memory_used)) == (30704 * MIB, 16 * MIB)
    assert (value(stack(of).library), stack(of).flavour) == ("7.2.2", "in-tree")


def test_a_metric_without_any_identity_is_one_card_and_no_figure() -> None:
    card = only(machine(said("amd-smi", "metric", "-u", "--json", file="amd/amd-smi-metric-usage.w7700.json")))
    assert (card.name, card.support) == ("AMD card", Support.UNKNOWN)
    assert isinstance(card.memory_total, Unknown)


def test_a_driver_version_that_is_the_kernels_release_is_the_kernels_own_driver() -> None:
    of = machine(said("amd-smi", "static", file="amd/amd-smi-static.780m.debian.txt"))
    card = only(of)
    assert (card.name, card.pci, card.device_id, value(card.arch)) == ("Phoenix3", "0000:65:00.0", "1900", "gfx1103")
    assert card.integrated
    assert (value(stack(of).module), stack(of).flavour) == ("in-tree 7.0.14-17-pve", "in-tree")


def test_the_version_line_gives_rocm_and_a_mangled_kernel_is_in_tree() -> None:
    of = machine(said("amd-smi", "version", file="amd/amd-smi-version.rocm6.4.txt"))
    assert cards(of) == ()
    found = stack(of)
    assert value(found.library) == "6.4.0"
    assert (value(found.module), found.flavour) == ("in-tree 6.8.0-79", "in-tree")


def test_both_shapes_of_the_topology_give_pcie_between_the_two_cards_and_no_xgmi() -> None:
    listed = said("amd-smi", "list", "--json", file="amd/amd-smi-list.rocm6.2.json")
    for shape, peer in (("old", "disabled"), ("new", "")):
        of = machine(listed, said("amd-smi", "topology", "--json", file="amd/amd-smi-topology.old-new.json", key=shape))
        (link,) = amd.topology(of, cards(of))
        assert (link.a, link.b, link.kind, link.peer_access) == (0, 1, "PCIE", peer)


def test_rocm_smi_before_version_6_writes_other_keys_and_the_cards_are_the_same() -> None:
    of = machine(said("rocm-smi", "-a", "--json", file="amd/rocm-smi.mi100.rocm5.7.json"))
    found = cards(of)
    assert [(card.name, card.pci) for card in found] == [
        ("Arcturus GL-XL [Instinct MI100]", "0000:1e:00.0"),
        ("Arcturus GL-XL [Instinct MI100]", "0000:22:00.0"),
    ]
    assert [value(card.arch) for card in found] == ["gfx908", "gfx908"]
    assert value(found[0].memory_total) == 34_342_961_152
    assert found[0].tool_index == {"rocm-smi": 0}
    assert found[0].support is Support.UNSUPPORTED


def test_rocm_smi_of_version_6_names_the_target_and_system_is_no_card() -> None:
    card = only(machine(said("rocm-smi", "-a", "--json", file="amd/rocm-smi.rx6700xt.rocm6.1.json")))
    assert (value(card.arch), card.support, card.pci) == ("gfx1031", Support.UNSUPPORTED, "0000:07:00.0")
    assert (value(card.memory_total), value(card.memory_used)) == (12_868_124_672, 1_572_745_216)
    assert (card.driver_version, card.device_id) == ("6.3.6", "73df")
    short = only(machine(said("rocm-smi", "--showmeminfo", "vram", "--json", file="amd/rocm-smi.rx7900xt.subset.json")))
    assert (short.name, value(short.arch), value(short.memory_total)) == (
        "Radeon RX 7900 XT",
        "gfx1100",
        21_458_059_264,
    )


def test_a_warning_in_place_of_json_is_no_card() -> None:
    of = machine(said("rocm-smi", "--json", "--showrasinfo", file="amd/rocm-smi.no-data.txt"))
    assert cards(of) == ()


def test_json_after_a_warning_line_and_beside_a_bad_exit_code_is_read() -> None:
    command = said("amd-smi", "list", "--json", file="amd/amd-smi-list.rocm6.2.json", rc=1)
    command["stdout"] = "WARNING: User is missing the group render\n" + command["stdout"]
    assert len(cards(machine(command))) == 2


def test_rocminfo_knows_an_apu_and_its_uuid_is_no_selector() -> None:
    card = only(machine(said("rocminfo", file="amd/rocminfo.gfx1151.txt")))
    assert (value(card.arch), card.pci, card.uuid) == ("gfx1151", "0000:c6:00.0", "")
    assert (card.unified, card.integrated, card.device_id) == (True, True, "1586")


def test_an_apu_that_is_newer_than_the_table_is_known_by_rocminfo() -> None:
    command = said("rocminfo", file="amd/rocminfo.gfx1151.txt")
    command["stdout"] = command["stdout"].replace("5510(0x1586)", "65000(0xfde8)")
    assert only(machine(command)).unified


def test_rocm_smi_is_asked_where_amd_smi_is_not_installed(tmp_path: Path) -> None:
    program = tmp_path / "rocm-smi"
    program.write_text(f"#!/bin/sh\nexec /bin/cat {FIXTURES / 'amd' / 'rocm-smi.rx7900xt.subset.json'}\n")
    program.chmod(0o755)
    (reading,) = amd_tools.ask(LocalSystem(env={"PATH": str(tmp_path)})).cards
    assert (reading.tool, reading.total) == ("rocm-smi", 21_458_059_264)


def test_the_complaints_of_rocminfo_are_the_drivers_failure() -> None:
    refused = stack(machine(recorded("amd/fail/kfd-permission.json")))
    assert refused.failure.startswith("this user is not in the group that owns /dev/kfd (rocminfo: Unable to open")
    unloaded = stack(machine(recorded("amd/fail/no-module.json")))
    assert (value(unloaded.loaded), unloaded.failure[:40]) == (False, "the kernel module amdgpu is not loaded (")


def test_a_tool_that_answers_is_no_proof_that_compute_does() -> None:
    of = machine(
        said("rocm-smi", "-a", "--json", file="amd/rocm-smi.rx6700xt.rocm6.1.json"),
        files=on_bus("0000:07:00.0", device="0x73df"),
        nodes={"/dev/kfd": {"gid": 992, "open": "EACCES"}, "/dev/dri/renderD128": {}},
    )
    card = only(of)
    assert (value(card.openable), value(card.usable)) == (False, False)
    assert value(card.memory_total) == 12_868_124_672


def test_two_parts_of_one_mi300x_are_two_accelerators_with_their_own_nodes() -> None:
    files = kfd(
        node0="kfd/mi300x-host-cpu.node0.properties",
        node2="kfd/mi300x-cpx.node2.properties",
        node3="kfd/mi300x-cpx.node3.properties",
    ) | on_bus("0000:05:00.0")
    files["/sys/bus/pci/devices/0000:05:00.0/current_compute_partition"] = "CPX\n"
    files["/sys/bus/pci/devices/0000:05:00.0/current_memory_partition"] = "NPS4\n"
    bank = "/sys/class/kfd/kfd/topology/nodes/2/mem_banks/0"
    files[f"{bank}/properties"] = "heap_type 1\nsize_in_bytes 25753026560\n"
    files[f"{bank}/used_memory"] = "1073741824\n"
    of = machine(files=files, nodes={"/dev/kfd": {}, "/dev/dri/renderD128": {}, "/dev/dri/renderD129": {}})
    first, second = cards(of)
    assert [(card.pci, card.nodes[1].path) for card in (first, second)] == [
        ("0000:05:00.0", "/dev/dri/renderD128"),
        ("0000:05:00.1", "/dev/dri/renderD129"),
    ]
    assert (first.partitioning, first.partition_mode) == (Partitioning.COMPUTE, "CPX/NPS4")
    assert (first.uuid, second.uuid) == ("", "")  # the number is the whole card's
    assert (value(first.memory_total), value(first.memory_free)) == (25_753_026_560, 24_679_284_736)
    assert isinstance(second.memory_total, Unknown)
    assert (first.link_group, value(first.arch)) == (f"{990733400213846464:x}", "gfx942")
    assert amd.topology(of, (first, second)) == ()  # parts of one card


def test_a_whole_mi300x_and_a_whole_7900_have_their_addresses_and_selectors() -> None:
    files = kfd(node2="kfd/mi300x-spx.properties", node3="kfd/rx7900xtx.properties")
    big, small = cards(machine(files=files))
    assert (big.pci, value(big.arch), big.uuid) == ("0000:47:00.0", "gfx942", f"GPU-{1025559293630808624:016x}")
    assert (small.pci, value(small.arch), small.device_id) == ("0000:86:00.0", "gfx1100", "744c")
    assert (big.partitioning, small.link_group) == (Partitioning.NONE, "")


def test_cpu_nodes_of_old_and_new_kernels_are_no_cards() -> None:
    files = kfd(node0="kfd/node-cpu.topology-parsing.properties", node1="kfd/mi300x-host-cpu.node0.properties")
    assert cards(machine(files=files)) == ()


def test_a_node_with_a_target_and_no_units_is_said_and_not_counted() -> None:
    base = "/sys/class/kfd/kfd/topology/nodes/1/properties"
    of = machine(files={base: "simd_count 0\ngfx_target_version 90402\n", "/sys/module/amdgpu/initstate": "live\n"})
    assert cards(of) == ()
    assert stack(of).failure == "KFD node 1 names gfx942 and has no compute units (simd_count 0)"


def test_one_card_is_granted_and_the_masked_one_is_present() -> None:
    granted, masked = cards(tree("amd/kfd/masked-node.tree.json"))
    assert (value(granted.arch), value(granted.usable)) == ("gfx1100", True)
    assert (value(masked.present), value(masked.openable)) == (True, False)


def test_strix_halo_is_one_unified_card_although_only_drm_shows_it() -> None:
    card = only(tree("amd/kfd/strix-halo.tree.json"))
    assert (value(card.arch), card.unified, card.integrated) == ("gfx1151", True, True)
    assert value(card.memory_total) == 2 * GIB + 112 * GIB
    assert card.support is Support.SUPPORTED


def test_memory_behind_an_apu_is_no_more_than_the_machine_has() -> None:
    # ROCm/legacy-rocm-build#6004: 132 GiB were believed on a machine of 128.
    files = on_bus("0000:c6:00.0", device="0x1586") | {"/proc/meminfo": "MemTotal: 125829120 kB\n"}
    base = "/sys/bus/pci/devices/0000:c6:00.0"
    files |= {f"{base}/mem_info_vram_total": str(8 * GIB), f"{base}/mem_info_gtt_total": str(124 * GIB)}
    assert value(only(machine(files=files)).memory_total) == (8 + 120) * GIB


def test_the_memory_of_a_data_centre_apu_is_not_counted_twice() -> None:
    files = on_bus("0000:01:00.0", device="0x74a0")
    base = "/sys/bus/pci/devices/0000:01:00.0"
    files |= {f"{base}/mem_info_vram_total": str(128 * GIB), f"{base}/mem_info_gtt_total": str(64 * GIB)}
    card = only(machine(files=files))
    assert (card.integrated, card.unified, value(card.memory_total)) == (True, True, 128 * GIB)


def test_a_card_whose_only_node_contradicts_itself_is_present_and_not_usable() -> None:
    node = "/sys/class/kfd/kfd/topology/nodes/1/properties"
    files = on_bus("0000:05:00.0") | {node: "simd_count 0\ngfx_target_version 90402\n"}
    files["/sys/bus/pci/devices/0000:05:00.0/drm/renderD128/dev"] = ""
    card = only(machine(files=files, nodes={"/dev/kfd": {}, "/dev/dri/renderD128": {}}))
    assert card.usable == Known(value=False, how="KFD node 1 names gfx942 and has no compute units (simd_count 0)")


def test_einval_on_kfd_says_that_the_nodes_number_is_of_an_earlier_start() -> None:
    files = on_bus("0000:03:00.0", device="0x744c") | {"/proc/devices": "Character devices:\n511 kfd\n"}
    of = machine(files=files, nodes={"/dev/kfd": {"major": 234, "open": "EINVAL"}})
    assert only(of).usable == Known(
        value=False,
        how="not openable: /dev/kfd: EINVAL "
        "(/dev/kfd has major 234, the kernel's kfd has 511: the node is of an earlier start)",
    )


def test_parts_without_a_topology_are_known_by_either_name_of_their_platform_devices() -> None:
    for sign in "._":
        files = on_bus("0000:05:00.0") | {"/sys/bus/pci/devices/0000:05:00.0/current_compute_partition": "DPX"}
        files["/sys/bus/pci/devices/0000:05:00.0/mem_info_vram_total"] = str(192 * GIB)
        files["/sys/bus/pci/devices/0000:05:00.0/drm/renderD128/dev"] = ""
        files[f"/sys/devices/platform/amdgpu_xcp{sign}29/drm/renderD129/dev"] = ""
        found = cards(machine(files=files))
        assert [card.nodes[1].path for card in found] == ["/dev/dri/renderD128", "/dev/dri/renderD129"]
        assert [value(card.memory_total) for card in found] == [96 * GIB, 96 * GIB]


def test_cards_of_one_hive_are_linked() -> None:
    base = "/sys/class/kfd/kfd/topology/nodes"
    text = (
        "simd_count 1216\ngfx_target_version 90402\ndevice_id 29857\nhive_id 77\ndrm_render_minor {}\nlocation_id {}\n"
    )
    files = {f"{base}/{n}/properties": text.format(120 + 8 * n, 256 * n) for n in (1, 2, 3)}
    of = machine(files=files)
    assert [(link.a, link.b, link.kind) for link in amd.topology(of, cards(of))] == [
        (0, 1, "XGMI"),
        (0, 2, "XGMI"),
        (1, 2, "XGMI"),
    ]


def test_a_card_for_a_guest_and_a_guests_share_are_named() -> None:
    files = on_bus("0000:03:00.0")
    bound = only(machine(files=files, links={"/sys/bus/pci/devices/0000:03:00.0/driver": "../../drivers/vfio-pci"}))
    assert bound.usable == Known(value=False, how="set aside for a virtual machine (vfio-pci)")
    assert only(machine(files=on_bus("0000:03:00.0", device="0x74b5"))).partitioning is Partitioning.SRIOV_VF


def test_tenants_are_the_processes_that_amd_smi_lists() -> None:
    text = '[{"gpu": 0, "process_list": [{"process_info": {"name": "python3", "pid": 4711, "memory_usage": '
    text += '{"vram_mem": {"value": 2097152, "unit": "B"}}}}]}]'
    card = only(machine({"argv": ["amd-smi", "process", "--json"], "stdout": text}))
    assert [(one.pid, one.name, value(one.memory)) for one in card.tenants] == [(4711, "python3", 2_097_152)]
