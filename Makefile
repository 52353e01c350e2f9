# SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
# SPDX-License-Identifier: Apache-2.0

NAME    := gardener-extension-shoot-hibernation-guard
VERSION := $(shell cat VERSION)
GIT_COMMIT     = $(shell git rev-parse --verify -q HEAD 2>/dev/null || echo unknown)
GIT_TREE_STATE = $(shell test -z "$$(git status --porcelain 2>/dev/null)" && echo clean || echo dirty)
BUILD_DATE     = $(shell git log -1 --format=%cI 2>/dev/null || echo 1970-01-01T00:00:00Z)
IMAGE   ?= $(NAME)
DOCKER  ?= docker

version_package := k8s.io/component-base/version
LDFLAGS = -s -w -X $(version_package).gitVersion=$(VERSION) -X $(version_package).gitCommit=$(GIT_COMMIT) \
	-X $(version_package).gitTreeState=$(GIT_TREE_STATE) -X $(version_package).buildDate=$(BUILD_DATE)

# One set of flags for everything, tests and tools too: other flags would fill the build cache a second time.
export CGO_ENABLED := 0
export GOFLAGS     := -buildvcs=false -trimpath
export GOWORK      := off

staticcheck   = go tool -modfile=hack/tools/staticcheck/go.mod staticcheck
golangci-lint = go tool -modfile=hack/tools/golangci-lint/go.mod golangci-lint

.PHONY: help
help: ## Lists the targets.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-22s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##### Run and test

.PHONY: demo
demo: tools build ## Plays sleep and wake-up of a Shoot with real Kyverno, without and with the guard; writes out/demo.json.
	@hack/tick.sh "building the demo" go build -o bin/demo ./test/demo
	@bin/demo

.PHONY: test
test: tools ## Runs all tests but the long ones. Tests that start control planes run one package at a time.
	@hack/tick.sh "compiling the tests" go vet ./...
	go test -p 2 -timeout 10m $$(go list ./... | grep -v '/test/')
	go test -p 1 -timeout 30m -count 1 -v ./test/...

.PHONY: test-e2e
test-e2e: tools ## Runs the long tests too (build tag e2e), and compares the rights that were granted with those that were used.
	@hack/tick.sh "compiling the tests" go vet -tags e2e ./...
	@rm -rf out/rights
	BENCH_RIGHTS_DIR=$(CURDIR)/out/rights go test -p 1 -timeout 150m -count 1 -v -tags e2e ./test/...
	go run ./test/rights out/rights

##### Build

.PHONY: build
build: ## Builds the project's own commands into bin/.
	@mkdir -p bin
	@hack/tick.sh "building $(VERSION)" go build -ldflags "$(LDFLAGS)" -o bin/ ./cmd/...

.PHONY: tools
tools: ## Builds etcd, Kubernetes, Kyverno and Gardener's parts from their Go modules into bin/, what is missing or outdated.
	@hack/build-tools.sh

.PHONY: docker-images
docker-images: ## Builds the container images IMAGE and IMAGE-admission with DOCKER (docker unless told otherwise).
	for target in $(NAME) $(NAME)-admission; do \
		$(DOCKER) build --build-arg GIT_COMMIT=$(GIT_COMMIT) --build-arg GIT_TREE_STATE=$(GIT_TREE_STATE) --build-arg BUILD_DATE=$(BUILD_DATE) \
			--target $$target --tag $(IMAGE)$${target#$(NAME)}:$(VERSION) . || exit 1; done

##### Check and generate

.PHONY: check
check: ## Runs gofmt, go vet, staticcheck and the test of import directions.
	@unformatted=$$(gofmt -s -l .); if [ -n "$$unformatted" ]; then echo "run make format for:"; echo "$$unformatted"; exit 1; fi
	@hack/tick.sh "go vet" go vet -tags e2e ./...
	@hack/tick.sh "staticcheck" $(staticcheck) -tags e2e ./...
	go test -count 1 ./pkg

.PHONY: lint
lint: ## Runs golangci-lint with .golangci.yaml.
	@hack/tick.sh "golangci-lint" $(golangci-lint) run

.PHONY: format
format: ## Formats the Go code.
	gofmt -s -w .

.PHONY: generate
generate: generate-registration ## Writes all generated files.
	hack/generate.sh

.PHONY: generate-registration
generate-registration: ## Writes example/controller-registration.yaml, which contains the chart.
	go run ./hack/registration

.PHONY: check-generate
check-generate: ## Fails if a generated file is not what make generate writes.
	@mkdir -p out
	@git ls-files -co --exclude-standard | xargs cksum >out/before-generate
	@$(MAKE) --no-print-directory generate
	@git ls-files -co --exclude-standard | xargs cksum | diff out/before-generate - && rm out/before-generate

.PHONY: tidy
tidy: ## Runs go mod tidy in all modules.
	@for module in $$(git ls-files -co --exclude-standard '*go.mod'); do \
		echo "$$module" && go mod tidy -C "$$(dirname "$$module")" || exit 1; done

.PHONY: clean
clean: ## Removes bin/ and out/.
	rm -rf bin out
