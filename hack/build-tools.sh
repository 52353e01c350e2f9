#!/bin/sh
# SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
# SPDX-License-Identifier: Apache-2.0

# Builds the real parts that the demo and the tests run into bin/, each from the module in hack/ that pins its version.
# A part is built if it is missing or if its module's go.mod, or the flags below, are not those it was built with.
set -eu
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath" GOWORK=off
mkdir -p bin

total=10
number=0
built=0

# version_in MODULE PATH: the version of PATH that the module requires.
version_in() {
  sed -n "s|^[[:space:]]*$2 \(v[^ ]*\).*|\1|p" "hack/$1/go.mod"
}

# build NAME MODULE PACKAGE
build() {
  number=$((number + 1))
  flags="-s -w"
  # The version that an API server answers at /version and that clients go by.
  case $2 in
  kubernetes) flags="$flags -X k8s.io/component-base/version.gitVersion=$(version_in kubernetes k8s.io/kubernetes)" ;;
  gardener) flags="$flags -X k8s.io/component-base/version.gitVersion=$(version_in gardener github.com/gardener/gardener)" ;;
  esac
  stamp=bin/.$1.built-from
  want=$(echo "$3 $flags" && cat "hack/$2/go.mod")
  if [ -x "bin/$1" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then
    return
  fi
  # Renamed into place: a process that still runs the old file keeps it, and an aborted build leaves nothing half done.
  hack/tick.sh "[$number/$total] building $1" go build -C "hack/$2" -ldflags "$flags" -o "$PWD/bin/.$1.new" "$3"
  mv -f "bin/.$1.new" "bin/$1"
  echo "$want" >"$stamp"
  built=$((built + 1))
}

build etcd kubernetes go.etcd.io/etcd/server/v3
build kube-apiserver kubernetes k8s.io/kubernetes/cmd/kube-apiserver
build kube-controller-manager kubernetes k8s.io/kubernetes/cmd/kube-controller-manager
build kube-scheduler kubernetes k8s.io/kubernetes/cmd/kube-scheduler
build kyverno kyverno github.com/kyverno/kyverno/cmd/kyverno
build background-controller kyverno github.com/kyverno/kyverno/cmd/background-controller
build cleanup-controller kyverno github.com/kyverno/kyverno/cmd/cleanup-controller
build reports-controller kyverno github.com/kyverno/kyverno/cmd/reports-controller
build gardener-resource-manager gardener github.com/gardener/gardener/cmd/gardener-resource-manager
build gardener-apiserver gardener github.com/gardener/gardener/cmd/gardener-apiserver

echo "bin/: $total tools, $built of them built now"
