// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ControllerConfiguration is the file given to the controller with --config.
type ControllerConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// Care configures the pass over Shoots that are awake.
	// +optional
	Care *Care `json:"care,omitempty"`
	// ShootClient configures the clients of the Shoots' API servers.
	// +optional
	ShootClient *ShootClient `json:"shootClient,omitempty"`
}

// Care configures the pass over Shoots that are awake.
type Care struct {
	// SyncPeriod is the time between two passes over an awake Shoot that has something on record; nothing is asked of a
	// Shoot that has not. Default: 5m. At least 10s.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
}

// ShootClient configures the clients of the Shoots' API servers.
type ShootClient struct {
	// Timeout of a single request. Default: 5s. At least 1s, at most 15s: a lifecycle call returns within 20s.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// QPS is the number of requests per second to one Shoot. Default: 50.
	// +optional
	QPS *float32 `json:"qps,omitempty"`
	// Burst is the number of requests to one Shoot at once. Default: 100.
	// +optional
	Burst *int32 `json:"burst,omitempty"`
}
