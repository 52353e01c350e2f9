#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
# SPDX-License-Identifier: Apache-2.0

# Writes zz_generated.*.go of the API packages and docs/api-reference. The generators are built in their own module's context,
# so nothing of theirs enters go.mod.
set -o errexit -o nounset -o pipefail

cd "$(dirname "$0")/.."
version=v0.36.3 # of k8s.io/code-generator: the same as k8s.io/apimachinery in go.mod
packages=(./pkg/apis/guard/v1alpha1 ./pkg/apis/config/v1alpha1)

for generator in deepcopy defaulter; do
  output=zz_generated.deepcopy.go
  if [[ $generator == defaulter ]]; then output=zz_generated.defaults.go; fi
  go run "k8s.io/code-generator/cmd/$generator-gen@$version" \
    --go-header-file hack/boilerplate.go.txt --output-file "$output" "${packages[@]}"
done

reference_version=v0.3.0 # of crd-ref-docs
for api in guard config; do
  go run "github.com/elastic/crd-ref-docs@$reference_version" --log-level=ERROR --source-path="pkg/apis/$api/v1alpha1" \
    --config=hack/api-reference/config.yaml --templates-dir=hack/api-reference/templates --renderer=markdown \
    --output-path="docs/api-reference/$api.md"
done
