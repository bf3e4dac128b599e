"""Why single lines of a rendered file are there, by Workload key; renderers print them as comments."""

from selfhost.engines.base import engine
from selfhost.plan.container.way import Way
from selfhost.shapes.plan import EngineBuild

_ENV = {
    "HF_HUB_OFFLINE": "the weights are mounted: no hub is asked, and no token of it is in here",
    "CUDA_DEVICE_ORDER": "cards are numbered as nvidia-smi numbers them, not by speed",
    "VLLM_CPU_OMP_THREADS_BIND": "vLLM's own binding does not see the limits of a container",
    "VLLM_NO_USAGE_STATS": "no usage report to vLLM's makers",
    "PYTHONUNBUFFERED": "log lines of several processes come in the order in which they were written",
    "CCL_ALLREDUCE": "with oneCCL 2022 the first all-reduce was seen to hang on Battlemage",
}
_ALWAYS = {
    "init": "reaps the engine's children and passes signals on",
    "cap_drop": "a server on a port above 1024 needs no capability",
    "security_opt.0": "nobody becomes more than he is, by no setuid program",
    "ulimits.memlock": "pinned memory for transfers to the card",
    "ulimits.stack": "as NVIDIA asks for it; deep C++ frames of compilers",
    "log_options": "bounded, so that a log never fills the disk",
    "env.HOME": "caches go into the volume: every image has this folder, writable for every user",
    "env.USER": "torch asks for a name, and the image does not know this user's number",
    "env.TORCHINDUCTOR_CACHE_DIR": "its default is in /tmp, where nothing is kept",
    "argv.--host": "inside only; the published port says who reaches it",
}


def reasons_of(build: EngineBuild, way: Way, *, offset: int) -> dict[str, str]:
    """What depends on no size; some lines are in no file. `offset` is the number of mounts before those of the way."""
    found = {**_ALWAYS, **{f"env.{name}": why for name, why in _ENV.items()}}
    found["ports"] = "this machine only"
    if engine(build.engine).KEY_VARIABLE:
        found["env_files"] = "the key, in a file for its owner only and not in this one"
        found["network"] = "a network of its own"
    else:
        found["network"] = (
            "a network of its own: this engine has no key, so only this machine and this network reach it"
        )
    for key, why in way.reasons.items():
        if key == "mounts.injection":
            found |= {f"mounts.{offset + number}": why for number, _ in enumerate(way.injection.mounts)}
        elif key.startswith("security_opt."):
            wanted = key.partition(".")[2]
            numbers = [n for n, text in enumerate(way.injection.security_opt, start=1) if text.startswith(wanted)]
            found |= {f"security_opt.{number}": why for number in numbers}
        else:
            found[key] = why
    return found
