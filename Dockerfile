# SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
# SPDX-License-Identifier: Apache-2.0

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG GIT_COMMIT=unknown GIT_TREE_STATE=clean BUILD_DATE=1970-01-01T00:00:00Z
ARG TARGETOS TARGETARCH
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH make build \
    GIT_COMMIT=$GIT_COMMIT GIT_TREE_STATE=$GIT_TREE_STATE BUILD_DATE=$BUILD_DATE

FROM gcr.io/distroless/static-debian12:nonroot AS base
# The uid of nonroot, as a number: runAsNonRoot cannot judge a name.
USER 65532:65532

FROM base AS gardener-extension-shoot-hibernation-guard-admission
COPY --from=build /src/bin/gardener-extension-shoot-hibernation-guard-admission /
ENTRYPOINT ["/gardener-extension-shoot-hibernation-guard-admission"]

FROM base AS gardener-extension-shoot-hibernation-guard
COPY --from=build /src/bin/gardener-extension-shoot-hibernation-guard /
ENTRYPOINT ["/gardener-extension-shoot-hibernation-guard"]
