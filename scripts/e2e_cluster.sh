#!/usr/bin/env bash
# Prove chart, manifests, `up` and doctor's verdicts on a real cluster: bash scripts/e2e_cluster.sh VENV/bin [--fake-nodes] [pytest's words]
#
# Wants KUBECONFIG, and the right to make namespaces. Makes namespaces `selfhost-e2e-…` and removes them again; with
# --fake-nodes also two Nodes without a kubelet, which need an API server, a scheduler and controllers and no hardware.
# Without helm on PATH what needs it is skipped, and said to be.
set -euo pipefail
bin=$1
shift
: "${KUBECONFIG:?name the cluster: make e2e-cluster KUBECONFIG=/path/to/kubeconfig}"
words=()
for word in "$@"; do
  if [ "$word" = --fake-nodes ]; then export SELFHOST_E2E_FAKE_NODES=1; else words+=("$word"); fi
done
export SELFHOST_E2E_CLUSTER=$KUBECONFIG
"$bin/python" -m pytest -s -rs -p no:randomly tests/e2e/test_cluster.py "${words[@]+"${words[@]}"}"
