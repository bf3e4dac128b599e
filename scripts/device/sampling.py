"""Power, temperature, clocks and the energy counter of every NVIDIA card, as NVML gives them."""

import time
from typing import Any

PERIOD_S = 0.1


def sample(seconds: float) -> dict[str, Any]:
    """Samples of each card, `{uuid: [{t_s, power_w, temperature_c, sm_clock_mhz, energy_j}, …]}`, or a `failure`.

    A value that a card does not give is absent from its samples (energy needs Volta or later).
    """
    try:
        import pynvml
    except ImportError:
        return {"failure": "nvidia-ml-py is not installed"}
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return {"failure": f"NVML: {error}"}
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(pynvml.nvmlDeviceGetCount())]
        found: dict[str, list[dict[str, float]]] = {str(pynvml.nvmlDeviceGetUUID(handle)): [] for handle in handles}
        start = time.monotonic()
        while (now := time.monotonic() - start) < seconds:
            for handle, samples in zip(handles, found.values(), strict=True):
                samples.append({"t_s": now, **_values(pynvml, handle)})
            time.sleep(max(0.0, PERIOD_S - (time.monotonic() - start - now)))
        return {"cards": found}
    finally:
        pynvml.nvmlShutdown()


def _values(pynvml: Any, handle: Any) -> dict[str, float]:
    asked = {
        "power_w": lambda: pynvml.nvmlDeviceGetPowerUsage(handle) / 1000,
        "temperature_c": lambda: pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU),
        "sm_clock_mhz": lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
        "energy_j": lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000,
    }
    values: dict[str, float] = {}
    for name, ask in asked.items():
        try:
            values[name] = float(ask())
        except pynvml.NVMLError:
            continue
    return values


def settle(seconds: float) -> None:
    """Let clocks and power reach their level before they are sampled."""
    time.sleep(seconds)
