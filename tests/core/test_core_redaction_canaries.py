"""A snapshot may be shown to strangers: what names a person, a place or a piece of hardware is not in it."""

import json
from typing import Any

import pytest

from selfhost.core.redaction import redacted

HOST, USER, OTHER_USER = "zeppelin7", "marguerite", "thaddeus"
CANARIES = {
    "host name": HOST,
    "domain": "zeppelin7.lan.castafiore.net",
    "user": USER,
    "another user's home": f"/home/{OTHER_USER}",
    "e-mail": "marguerite@castafiore.net",
    "board serial": "PF3QX9K2",
    "GPU serial": "1324923045117",
    "GPU uuid": "GPU-7b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0",
    "MIG uuid": "MIG-1a2b3c4d-5e6f-7081-92a3-b4c5d6e7f809",
    "MAC address": "a4:bb:6d:91:2e:f7",
    "IPv4 address": "84.17.33.201",
    "private IPv4 address": "10.44.7.19",
    "IPv6 address": "2a02:8071:b78:1f00:9c3e:11ff:fe8b:44d2",
    "hub token": "hf_QwErTyUiOpAsDfGhJkLzXcVbNm1234",
    "API key": "sk-proj-4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c",
    "GitHub token": "ghp_1a2B3c4D5e6F7g8H9i0J1k2L3m4N5o6P7q8R",
    "password in a proxy": "hunter2secret",
    "registry login": "bWFyZ3Vlcml0ZTpodW50ZXIy",
    "machine id": "6f1d2c3b4a5968778695a4b3c2d1e0ff",
    "container id": "9c8b7a6f5e4d3c2b1a09f8e7d6c5b4a392817065f4e3d2c1b0a9f8e7d6c5b4a3",
    "bearer token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJtYXJndWVyaXRlIn0.c2lnbmF0dXJl",
    "private registry": "registry.castafiore.net",
    "AWS key": "AKIAIOSFODNN7EXAMPLQ",
}
KEPT = ("580.95.05", "535.161.07", "0000:01:00.0", "24564 MiB", "NVIDIA GeForce RTX 4090", "6.8.0-58-generic")

SMI = f"""<nvidia_smi_log><driver_version>580.95.05</driver_version><gpu id="00000000:01:00.0">
<product_name>NVIDIA GeForce RTX 4090</product_name><serial>{CANARIES["GPU serial"]}</serial>
<uuid>{CANARIES["GPU uuid"]}</uuid><fb_memory_usage><total>24564 MiB</total></fb_memory_usage>
<processes><process_info><pid>77</pid><process_name>/home/{OTHER_USER}/venv/bin/python</process_name></process_info></processes>
</gpu></nvidia_smi_log>"""


def snapshot() -> dict[str, Any]:
    ids = CANARIES["container id"]
    return {
        "schema": "selfhost.snapshot/1",
        "files": {
            "/etc/hostname": HOST + "\n",
            "/proc/sys/kernel/hostname": HOST + "\n",
            "/proc/sys/kernel/osrelease": "6.8.0-58-generic\n",
            "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05",
            "/etc/cdi/nvidia.yaml": "hostPath: /usr/lib/libcuda.so.535.161.07",
            "/sys/class/dmi/id/board_serial": CANARIES["board serial"] + "\n",
            "/etc/machine-id": CANARIES["machine id"] + "\n",
            "/etc/resolv.conf": f"nameserver {CANARIES['private IPv4 address']}\nsearch lan.castafiore.net\n",
            "/proc/self/mountinfo": f"40 30 8:1 /docker/containers/{ids}/hostname /etc/hostname - ext4 /dev/sda rw\n"
            f"41 30 8:1 /home/{OTHER_USER}/models /models rw - ext4 /dev/sda1 rw\n",
            "/proc/cmdline": f"root=UUID=6f1d2c3b ip={CANARIES['IPv4 address']} quiet",
            "/proc/1/environ": f"HF_TOKEN={CANARIES['hub token']}\0HOSTNAME={HOST}\0CUDA_VISIBLE_DEVICES=0",
            f"/home/{USER}/.docker/config.json": json.dumps(
                {
                    "auths": {CANARIES["private registry"]: {"auth": CANARIES["registry login"]}},
                    "currentContext": "default",
                }
            ),
        },
        "env": {
            "HF_TOKEN": CANARIES["hub token"],
            "AWS_ACCESS_KEY_ID": CANARIES["AWS key"],
            "https_proxy": f"http://{USER}:{CANARIES['password in a proxy']}@10.44.7.19:3128",
            "NVIDIA_VISIBLE_DEVICES": f"{CANARIES['GPU uuid']},{CANARIES['MIG uuid']}",
            "HOME": f"/home/{USER}",
        },
        "commands": [
            {"argv": ["nvidia-smi", "-q", "-x"], "rc": 0, "stdout": SMI},
            {
                "argv": ["nvidia-smi", "-L"],
                "rc": 0,
                "stdout": f"GPU 0: NVIDIA GeForce RTX 4090 (UUID: {CANARIES['GPU uuid']})\n"
                f"  MIG 3g.40gb     Device  0: (UUID: {CANARIES['MIG uuid']})\n",
            },
            {
                "argv": ["getent", "ahosts", "huggingface.co"],
                "rc": 0,
                "stdout": f"{CANARIES['IPv6 address']} STREAM\n{CANARIES['IPv4 address']} {CANARIES['domain']}\n",
                "stderr": f"link/ether {CANARIES['MAC address']} for {CANARIES['e-mail']}",
            },
        ],
        "docker": {
            "info": {
                "Name": HOST,
                "ServerVersion": "28.1.1",
                "ID": "5a6b:7c8d",
                "RegistryConfig": {"IndexConfigs": {CANARIES["private registry"]: {}}},
                "HttpProxy": f"http://{USER}:{CANARIES['password in a proxy']}@proxy:3128",
                "Labels": [f"owner={CANARIES['e-mail']}"],
            },
            "containers": [
                {
                    "Id": ids,
                    "Name": "/vllm",
                    "Config": {
                        "Image": f"{CANARIES['private registry']}/vllm:v1",
                        "Hostname": ids[:12],
                        "Env": [f"VLLM_API_KEY={CANARIES['API key']}", "CUDA_VISIBLE_DEVICES=1"],
                        "Cmd": ["--api-key", CANARIES["API key"]],
                    },
                }
            ],
        },
        "kubernetes": {
            "objects": [
                {
                    "kind": "Node",
                    "metadata": {"name": HOST, "annotations": {"token": CANARIES["bearer token"]}},
                    "status": {
                        "addresses": [{"type": "InternalIP", "address": CANARIES["private IPv4 address"]}],
                        "nodeInfo": {"machineID": CANARIES["machine id"], "kernelVersion": "6.8.0-58-generic"},
                    },
                },
                {"kind": "Secret", "metadata": {"name": "hf"}, "data": {"token": CANARIES["GitHub token"]}},
            ]
        },
    }


@pytest.mark.parametrize("kind", CANARIES)
def test_no_canary_is_in_what_is_saved(kind: str) -> None:
    clean, _ = redacted(snapshot())
    assert CANARIES[kind] not in json.dumps(clean)


@pytest.mark.parametrize("text", KEPT)
def test_what_the_machine_is_stays(text: str) -> None:
    clean, _ = redacted(snapshot())
    assert text in json.dumps(clean)


def test_one_card_keeps_one_name_in_every_place() -> None:
    clean, _ = redacted(snapshot())
    listed = clean["commands"][1]["stdout"].split("UUID: ")[1].split(")")[0]
    assert listed in clean["commands"][0]["stdout"]
    assert clean["env"]["NVIDIA_VISIBLE_DEVICES"].startswith(listed)


def test_a_refused_path_keeps_its_reason_whatever_it_is_called() -> None:
    clean, _ = redacted({"errors": {"/var/run/secrets/kubernetes.io/serviceaccount/token": "EACCES"}})
    assert clean["errors"] == {"/var/run/secrets/kubernetes.io/serviceaccount/token": "EACCES"}


def test_what_was_replaced_is_counted() -> None:
    _, counts = redacted(snapshot())
    assert counts
    assert all(number > 0 for number in counts.values())


def test_twenty_kinds_are_planted() -> None:
    assert len(CANARIES) >= 20
