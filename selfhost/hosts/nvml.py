"""NVML by NVIDIA's own bindings, as a program of this one file that prints one JSON object.

It runs apart from us because a call into a hung driver never returns. A question that a card does not answer is left
out, and the answer is in `errors` by the question's name: the GB10 has no memory of its own to report.
"""

import ctypes
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any

_VIRTUALIZATION = ("None", "Pass-Through", "VGPU", "Host VGPU", "Host VSGA")
_FABRIC = ("", "Not Started", "In Progress", "Completed")
_TOPOLOGY = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
# nvmlGpuP2PStatus_t in the letters of `nvidia-smi topo -p2p`.
_PEER = ("OK", "CNS", "GNS", "TNS", "DR", "NS", "U")
# nvmlGpuP2PCapsIndex_t; the bindings have it as a tuple by mistake (a comma behind the 0).
_P2P_READ = 0
_LINKS = 36
_SWITCH = 2


def main() -> int:
    """Print what NVML says. Exit code 0 also when it says nothing: the reason is then in `failure`."""
    sys.stdout.write(json.dumps(facts()) + "\n")
    return 0


def facts() -> Mapping[str, Any]:
    """Everything that NVML says; `failure` when it cannot be reached."""
    try:
        import pynvml  # type: ignore[import-untyped]
    except ImportError:
        return {"failure": "nvidia-ml-py is not installed"}
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return {"failure": str(error), "code": error.value}
    try:
        return _everything(pynvml)
    finally:
        pynvml.nvmlShutdown()


class _Question:
    """Asks one thing after the other; an error is kept under the name of what was asked."""

    def __init__(self, nvml: ModuleType) -> None:
        self._nvml = nvml
        self.said: dict[str, Any] = {}
        self.errors: dict[str, str] = {}

    def ask(self, name: str, call: Callable[[], Any]) -> Any:
        try:
            value = call()
        except self._nvml.NVMLError as error:
            self.errors[name] = str(error)
            return None
        self.said[name] = value
        return value

    def all(self) -> dict[str, Any]:
        return {**self.said, "errors": self.errors} if self.errors else self.said


def _everything(nvml: ModuleType) -> dict[str, Any]:
    top = _Question(nvml)
    top.ask("driver_version", nvml.nvmlSystemGetDriverVersion)
    top.ask("nvml_version", nvml.nvmlSystemGetNVMLVersion)
    top.ask("cuda_version", lambda: _cuda(nvml.nvmlSystemGetCudaDriverVersion_v2()))
    count = top.ask("count", nvml.nvmlDeviceGetCount) or 0
    devices: list[dict[str, Any]] = []
    handles: list[Any] = []
    for index in range(count):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
        except nvml.NVMLError as error:
            devices.append({"index": index, "errors": {"handle": str(error)}})
            continue
        handles.append((index, handle))
        devices.append(_device(nvml, index, handle))
    return {**top.all(), "devices": devices, "links": _links(nvml, handles)}


def _cuda(number: int) -> str:
    """13000 is 13.0, 12080 is 12.8."""
    return f"{number // 1000}.{number % 1000 // 10}"


def _device(nvml: ModuleType, index: int, handle: Any) -> dict[str, Any]:
    about = _Question(nvml)
    about.said["index"] = index
    about.ask("name", lambda: nvml.nvmlDeviceGetName(handle))
    about.ask("uuid", lambda: nvml.nvmlDeviceGetUUID(handle))
    about.ask("minor", lambda: nvml.nvmlDeviceGetMinorNumber(handle))
    pci = about.ask("pci", lambda: nvml.nvmlDeviceGetPciInfo(handle))
    if pci is not None:
        about.said["pci"] = {"bus_id": _text(pci.busId), "device_id": f"0x{pci.pciDeviceId:08X}"}
    about.ask("memory", lambda: _memory(nvml, handle))
    about.ask("compute_capability", lambda: ".".join(map(str, nvml.nvmlDeviceGetCudaComputeCapability(handle))))
    about.ask("virtualization", lambda: _name(_VIRTUALIZATION, nvml.nvmlDeviceGetVirtualizationMode(handle)))
    if about.said.get("virtualization") == "VGPU":
        about.ask("licence", lambda: _licence(nvml, handle))
    about.ask("fabric", lambda: _fabric(nvml, handle))
    about.ask("processes", lambda: _processes(nvml, handle))
    mig = about.ask("mig", lambda: _mig_mode(nvml, handle))
    if mig == "Enabled":
        about.ask("slices", lambda: _slices(nvml, handle))
    return about.all()


def _text(text: str | bytes) -> str:
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text


def _name(names: Sequence[str], number: int) -> str:
    return names[number] if 0 <= number < len(names) else str(number)


def _memory(nvml: ModuleType, handle: Any) -> dict[str, int]:
    """Version 2 leaves out of `used` what the driver keeps for itself, as nvidia-smi does; R510 and later have it."""
    try:
        seen = nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
    except nvml.NVMLError_FunctionNotFound:
        seen = nvml.nvmlDeviceGetMemoryInfo(handle)
    return {"total": seen.total, "free": seen.free, "used": seen.used}


def _licence(nvml: ModuleType, handle: Any) -> str:
    features = nvml.nvmlDeviceGetGridLicensableFeatures(handle)
    seen = features.gridLicensableFeatures[: features.licensableFeaturesCount]
    return "Licensed" if any(feature.featureState for feature in seen) else "Unlicensed"


def _fabric(nvml: ModuleType, handle: Any) -> dict[str, Any]:
    """Status is of meaning only in the state Completed (nvml.h, nvmlGpuFabricInfoV_t)."""
    info = nvml.c_nvmlGpuFabricInfoV_t()
    nvml.nvmlDeviceGetGpuFabricInfoV(handle, ctypes.byref(info))
    state = _name(_FABRIC, info.state)
    if state != "Completed":
        return {"state": state}
    status = "Success" if info.status == 0 else str(nvml.NVMLError(info.status))
    return {"state": state, "status": status, "clique": info.cliqueId, "cluster": bytes(info.clusterUuid).hex()}


def _processes(nvml: ModuleType, handle: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle):
        asked = _Question(nvml)
        asked.said |= {"pid": process.pid, "used": process.usedGpuMemory}
        asked.ask("name", partial(nvml.nvmlSystemGetProcessName, process.pid))
        found.append(asked.said)
    return found


def _mig_mode(nvml: ModuleType, handle: Any) -> str:
    current, _ = nvml.nvmlDeviceGetMigMode(handle)
    return "Enabled" if current == nvml.NVML_DEVICE_MIG_ENABLE else "Disabled"


def _slices(nvml: ModuleType, handle: Any) -> list[dict[str, Any]]:
    """Numbers are those of `nvidia-smi -L`; a number without a slice answers Not Found."""
    found: list[dict[str, Any]] = []
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
        except (nvml.NVMLError_NotFound, nvml.NVMLError_InvalidArgument):
            continue
        found.append(_slice(nvml, index, part))
    return found


def _slice(nvml: ModuleType, index: int, part: Any) -> dict[str, Any]:
    about = _Question(nvml)
    about.said["index"] = index
    about.ask("name", lambda: nvml.nvmlDeviceGetName(part))
    about.ask("uuid", lambda: nvml.nvmlDeviceGetUUID(part))
    about.ask("memory", lambda: _memory(nvml, part))
    about.ask("gpu_instance", lambda: nvml.nvmlDeviceGetGpuInstanceId(part))
    about.ask("compute_instance", lambda: nvml.nvmlDeviceGetComputeInstanceId(part))
    return about.all()


def _links(nvml: ModuleType, handles: Sequence[tuple[int, Any]]) -> list[dict[str, Any]]:
    """Every pair: NVLinks if there are, else the way over PCI; and whether one may read the other's memory."""
    if len(handles) < 2:
        return []
    ports = {index: _ports(nvml, handle) for index, handle in handles}
    buses = {index: _bus(nvml, handle) for index, handle in handles}
    found: list[dict[str, Any]] = []
    for place, (a, first) in enumerate(handles):
        for b, second in handles[place + 1 :]:
            about = _Question(nvml)
            about.said |= {"a": a, "b": b}
            direct = ports[a].count(buses[b])
            switched = min(ports[a].count("switch"), ports[b].count("switch"))
            if direct or switched:
                about.said["kind"] = f"NV{direct or switched}"
            else:
                about.ask("kind", partial(_way, nvml, first, second))
            about.ask("peer_access", partial(_peer, nvml, first, second))
            found.append(about.said)
    return found


def _way(nvml: ModuleType, first: Any, second: Any) -> str:
    return _TOPOLOGY.get(nvml.nvmlDeviceGetTopologyCommonAncestor(first, second), "SYS")


def _peer(nvml: ModuleType, first: Any, second: Any) -> str:
    """Whether one may read the other's memory."""
    return _name(_PEER, nvml.nvmlDeviceGetP2PStatus(first, second, _P2P_READ))


def _bus(nvml: ModuleType, handle: Any) -> str:
    try:
        return _text(nvml.nvmlDeviceGetPciInfo(handle).busId).lower()
    except nvml.NVMLError:
        return "none"


def _ports(nvml: ModuleType, handle: Any) -> list[str]:
    """What is at the other end of each active NVLink: `switch`, or the address of a card."""
    found: list[str] = []
    for link in range(_LINKS):
        try:
            if not nvml.nvmlDeviceGetNvLinkState(handle, link):
                continue
            if nvml.nvmlDeviceGetNvLinkRemoteDeviceType(handle, link) == _SWITCH:
                found.append("switch")
            else:
                found.append(_text(nvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, link).busId).lower())
        except nvml.NVMLError:
            break  # links are numbered without a hole, and this card has no more
    return found


if __name__ == "__main__":
    sys.exit(main())
