#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what building and testing needs, on Debian 12 and Ubuntu 24.04: packages by apt (as root or by sudo), and
# Python packages for the tests into build/venv; with --build not those. Installs only what is missing, and needs no network where
# nothing is; may be run any number of times.
set -euo pipefail
cd "$(dirname "$0")/.."

PACKAGES=(
  cmake ninja-build g++ ccache             # build
  llvm-19-dev llvm-19-tools                # ADT and Support; FileCheck, not, lit
  libprotobuf-dev protobuf-compiler        # plans, ONNX
  libdnnl-dev                              # matrix products on the CPU
  libzip-dev                               # .npz files
  zlib1g-dev libzstd-dev libxml2-dev       # asked for by LLVM's CMake package
  libgtest-dev libgmock-dev                # tests
  libonnx-testdata                         # ONNX's own node cases
  python3 python3-pip python3-venv         # onnx-ml.proto out of its wheel; tests
)
PYTHON_PACKAGES=(numpy==2.2.6 safetensors==0.5.3)

forTests=true
case "${1:-}" in
  "") ;;
  --build) forTests=false ;;
  *) echo "usage: bash tools/setup.sh [--build]" >&2; exit 1 ;;
esac

fail() {
  echo "shardc: error: setup: $1" >&2
  echo "hint: $2" >&2
  exit 1
}

missing=()
for package in "${PACKAGES[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null || fail "no apt-get: got another system, wanted Debian 12 or Ubuntu 24.04" \
    "install what corresponds to: ${missing[*]}"
  sudo=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || fail "not root, and no sudo" "run as root: apt-get install ${missing[*]}"
    sudo=(sudo)
  fi
  echo "setup: installing ${missing[*]}" >&2
  log=$(mktemp)
  install=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120)
  if ! { "${install[@]}" update && "${install[@]}" install --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
    tail -20 "$log" >&2
    fail "apt-get could not install ${missing[*]}" "the end of its output is above; all of it is in $log"
  fi
  rm -f "$log"
fi

if $forTests && ! build/venv/bin/python3 -c 'import numpy, safetensors' 2>/dev/null; then
  echo "setup: Python packages for tests into build/venv" >&2
  mkdir -p build
  rm -rf build/venv
  python3 -m venv build/venv
  PYTHON_WANTED=("${PYTHON_PACKAGES[@]}")
  [ -e /usr/lib/llvm-19/build/utils/lit/lit.py ] || PYTHON_WANTED+=(lit==18.1.8)
  build/venv/bin/pip install --quiet --disable-pip-version-check --no-input "${PYTHON_WANTED[@]}" ||
    fail "pip could not install ${PYTHON_WANTED[*]}" "is the network there? To build without tests: bash tools/setup.sh --build"
fi
