#!/usr/bin/env bash
# What the tests need beside the product: helm, kubectl, real container engines. Installed only here, never by
# `make up`.
set -euo pipefail
PATH=$PATH:/sbin:/usr/sbin

python3 "$(dirname "$0")/../tests/e2e/helm_tool.py" >/dev/null ||
  printf 'the tests of the chart are left out; they need helm 4: set HELM to it\n' >&2

packages=()
command -v dockerd >/dev/null || packages+=(docker.io)
command -v podman >/dev/null || packages+=(podman)
command -v catatonit >/dev/null || [ -x /usr/libexec/podman/catatonit ] || packages+=(catatonit)
command -v sshd >/dev/null || packages+=(openssh-server)
command -v ssh >/dev/null || packages+=(openssh-client)
command -v busybox >/dev/null || packages+=(busybox-static)
command -v debootstrap >/dev/null || [ -x /usr/sbin/debootstrap ] || packages+=(debootstrap)
[ "${#packages[@]}" -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  printf 'the tests in containers are left out; they need root and: %s\n' "${packages[*]}" >&2
  exit 0
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
