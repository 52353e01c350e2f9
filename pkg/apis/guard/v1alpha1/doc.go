// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API of the hibernation guard: what a Shoot owner configures (GuardConfig), what the guard
// remembers in the Extension's status.state (GuardState) and what it reports in status.providerStatus (GuardStatus).
//
// +k8s:deepcopy-gen=package
// +k8s:defaulter-gen=TypeMeta
// +groupName=hibernation-guard.extensions.gardener.cloud
package v1alpha1
