// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	guardv1alpha1 "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ControllerConfiguration is the file given to the controller with --config.
type ControllerConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// HibernationConstraint says for all Shoots what is done about Gardener's constraint HibernationPossible: Lift or Leave, see
	// GuardConfig. The owner of a Shoot may narrow Lift to Leave, not the other way round. Default: Lift.
	// +optional
	HibernationConstraint *guardv1alpha1.ConstraintHandling `json:"hibernationConstraint,omitempty"`
	// Care configures the pass over Shoots that are awake.
	// +optional
	Care *Care `json:"care,omitempty"`
	// ShootClient configures the clients of the Shoots' API servers.
	// +optional
	ShootClient *ShootClient `json:"shootClient,omitempty"`
}

// Care configures the pass over Shoots that are awake.
type Care struct {
	// SyncPeriod is the time between two passes over an awake Shoot, give or take a tenth. A pass lists the two kinds of
	// webhook configurations; nothing of an awake Shoot is watched. Default: 5m. At least 10s.
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
	// TokenPatience is how long a lifecycle call waits for the renewal of the extension's own token, which expires in a long
	// sleep. Default: 6s. At least 0s, at most 10s: a lifecycle call returns within 20s.
	// +optional
	TokenPatience *metav1.Duration `json:"tokenPatience,omitempty"`
	// AdminFallback lets lifecycle calls of a hibernation or wake-up use Gardener's own kubeconfig of the Shoot when the
	// extension's own access does not work in time. Without it such a call is held back, and a wake-up goes on with what is
	// open. Default: true.
	// +optional
	AdminFallback *bool `json:"adminFallback,omitempty"`
}
