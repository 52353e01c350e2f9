#!/bin/sh
# SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
# SPDX-License-Identifier: Apache-2.0

# tick.sh LABEL COMMAND...
# Runs a long, quiet command and shows that it lives: the seconds since its start, every second on a terminal, every
# 30 seconds elsewhere. What the command prints is shown only if it fails. Ends with the command's exit code.
set -eu
label=$1
shift

log=$(mktemp)
ticker=
finish() {
  [ -z "$ticker" ] || kill "$ticker" 2>/dev/null || true
  rm -f "$log"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The ticker asks for its parent, so that it ends even when that is killed.
tick() {
  seconds=0
  while sleep 1 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
    seconds=$((seconds + 1))
    if [ -t 1 ]; then
      printf '\r%s … %d s ' "$label" "$seconds"
    elif [ $((seconds % 30)) -eq 0 ]; then
      printf '%s … %d s\n' "$label" "$seconds"
    fi
  done
}

[ -t 1 ] || printf '%s …\n' "$label"
start=$(date +%s)
tick &
ticker=$!

code=0
"$@" </dev/null >"$log" 2>&1 || code=$?

kill "$ticker" 2>/dev/null || true
wait "$ticker" 2>/dev/null || true
ticker=
[ ! -t 1 ] || printf '\r'
if [ "$code" -ne 0 ]; then
  printf '%s failed after %d s:\n' "$label" $(($(date +%s) - start))
  grep -v '^go: downloading ' "$log" || true
  exit "$code"
fi
printf '%s took %d s\n' "$label" $(($(date +%s) - start))
