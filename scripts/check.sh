#!/usr/bin/env bash
# What every commit passes; BIN is the folder of the tools. All of it runs, then the first failures decide.
set -uo pipefail

bin=${1:?usage: check.sh BIN}
cd "$(dirname "$0")/.." || exit
failed=()

step() {
  local name=$1
  shift
  echo "== $name"
  "$@" || failed+=("$name")
}

step format "$bin/ruff" format --check .
step lint "$bin/ruff" check .
step types "$bin/mypy"
step imports "$bin/lint-imports"
step words "$bin/codespell" README.md CHANGELOG.md CONTRIBUTING.md changes docs selfhost scripts benchmarks
step shell "$bin/shellcheck" scripts/*.sh .ci/run
step docs "$bin/python" scripts/docs.py --check
step tests "$bin/python" -m pytest -q -n 2 -m "not e2e and not vllm and not slow"

if [ "${#failed[@]}" -gt 0 ]; then
  echo "failed: ${failed[*]}" >&2
  exit 1
fi
