#!/usr/bin/env bash
# Make the virtual environment VENV with selfhost (editable) and the tools to work on it.
# Bare Debian 12 and Ubuntu 24.04: as root the missing system packages are installed, otherwise the command is named.
set -euo pipefail

venv=${1:?usage: setup.sh VENV}
cd "$(dirname "$0")/.."

missing_packages() {
  # venv without ensurepip is how Debian splits Python
  python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
  # the CPU build of vLLM is linked against libnuma (ldd vllm/_C.abi3.so)
  ldconfig -p | grep -q 'libnuma\.so\.1' || echo libnuma1
}

install_packages() {
  local packages=("$@")
  if ! command -v apt-get >/dev/null; then
    echo "missing: ${packages[*]} (names as in Debian); install them with this system's package manager" >&2
    exit 4
  fi
  if [ "$(id -u)" -ne 0 ]; then
    printf 'missing system packages; run\n\n  sudo apt-get update && sudo apt-get install -y %s\n\nthen again\n' \
      "${packages[*]}" >&2
    exit 4
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"
}

if ! command -v python3 >/dev/null; then
  install_packages python3 python3-venv libnuma1
fi
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "selfhost needs Python 3.11 or later; python3 is $(python3 --version)" >&2
  exit 4
fi
PATH=$PATH:/sbin:/usr/sbin
mapfile -t packages < <(missing_packages)
if [ "${#packages[@]}" -gt 0 ]; then
  install_packages "${packages[@]}"
fi

# an interrupted run leaves a folder without pip; a moved checkout one whose python is gone
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
  python3 -m venv --clear "$venv"
fi
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check 'pip>=25.1' # --group came with 25.1
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable . --group dev
"$venv/bin/selfhost" --version
