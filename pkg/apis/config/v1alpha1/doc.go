// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the component configuration of the hibernation guard.
//
// +k8s:deepcopy-gen=package
// +k8s:defaulter-gen=TypeMeta
// +groupName=config.hibernation-guard.extensions.gardener.cloud
package v1alpha1
