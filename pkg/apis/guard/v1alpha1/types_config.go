// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GuardConfig is the providerConfig of the extension in a Shoot's spec.extensions[]. All fields are optional; an absent
// providerConfig means all defaults.
type GuardConfig struct {
	metav1.TypeMeta `json:",inline"`

	// Mode says whether the guard acts or only judges and tells. Default: Guard.
	// +optional
	Mode *Mode `json:"mode,omitempty"`
	// Webhooks overrides which hooks are guarded. The first rule that matches a hook decides; a hook that no rule matches
	// is guarded when it could stand in the way of sleeping or waking up.
	// Never guarded, whatever is said here: hooks that Gardener manages, hooks whose backend is a url, and configurations
	// with the label hibernation-guard.extensions.gardener.cloud/leave=true.
	// +optional
	Webhooks []WebhookRule `json:"webhooks,omitempty"`
	// OpenTimeouts are the timeouts of hooks while they are open. A hook's own timeout is never made longer.
	// +optional
	OpenTimeouts *OpenTimeouts `json:"openTimeouts,omitempty"`
	// Stabilization is how long a backend must be ready without a break before its hooks get their own policy back, and how
	// long they are watched for afterwards. Default: 20s. At least 0s, at most 10m.
	// +optional
	Stabilization *metav1.Duration `json:"stabilization,omitempty"`
	// WakingUp says what happens when a backend does not come back after a wake-up.
	// +optional
	WakingUp *WakingUp `json:"wakingUp,omitempty"`
	// GoingDown says what happens when a hibernation does not come to its end.
	// +optional
	GoingDown *GoingDown `json:"goingDown,omitempty"`
	// HibernationConstraint says what is done about Gardener's constraint HibernationPossible, which keeps a Shoot with
	// fail-closed webhooks on critical resources from hibernating. Lift: webhook configurations whose flagged hooks the guard
	// would all open get the label by which Gardener's check leaves them out. Leave: the constraint stays. The operator of the
	// landscape may have set Leave for all Shoots; Lift here does not change that. Default: Lift.
	// +optional
	HibernationConstraint *ConstraintHandling `json:"hibernationConstraint,omitempty"`
	// Kyverno configures how the guard deals with Kyverno.
	// +optional
	Kyverno *Kyverno `json:"kyverno,omitempty"`
}

// Mode says whether the guard acts.
type Mode string

const (
	// ModeGuard opens, holds and restores hooks.
	ModeGuard Mode = "Guard"
	// ModeReport judges and tells, but opens nothing. What is open because of the guard is still given back.
	ModeReport Mode = "Report"
)

// ConstraintHandling says what is done about Gardener's constraint HibernationPossible.
type ConstraintHandling string

const (
	// ConstraintLift lifts the constraint where the guard opens every hook that causes it.
	ConstraintLift ConstraintHandling = "Lift"
	// ConstraintLeave leaves it as it is.
	ConstraintLeave ConstraintHandling = "Leave"
)

// Kyverno configures how the guard deals with Kyverno, which writes its webhook configurations itself and removes labels that
// others set on them.
type Kyverno struct {
	// ManageWebhookLabels lets the guard set the label for HibernationConstraint under webhookLabels in Kyverno's own
	// ConfigMap, from where Kyverno (1.12 and newer) puts it on its configurations. Default: true.
	// +optional
	ManageWebhookLabels *bool `json:"manageWebhookLabels,omitempty"`
}

// WebhookRule names hooks and says what to do with them. Fields that are set must all match; at least one must be set.
type WebhookRule struct {
	// Configuration is the name of a ValidatingWebhookConfiguration or MutatingWebhookConfiguration.
	// +optional
	Configuration string `json:"configuration,omitempty"`
	// Hook is the name of one entry in webhooks[].
	// +optional
	Hook string `json:"hook,omitempty"`
	// Namespace is the namespace of the Service in the hook's clientConfig.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Action is Guard or Leave.
	Action RuleAction `json:"action"`
}

// RuleAction says what is done with the hooks that a rule matches.
type RuleAction string

const (
	// ActionGuard guards the hook even if it could hardly stand in the way.
	ActionGuard RuleAction = "Guard"
	// ActionLeave never opens the hook.
	ActionLeave RuleAction = "Leave"
)

// OpenTimeouts are timeouts in whole seconds, 1 to 30.
type OpenTimeouts struct {
	// Mutating is the timeout of an open mutating hook. Mutating hooks are called one after the other, so theirs add up.
	// Default: 1.
	// +optional
	Mutating *int32 `json:"mutating,omitempty"`
	// Validating is the timeout of an open validating hook. Default: 3.
	// +optional
	Validating *int32 `json:"validating,omitempty"`
}

// WakingUp configures the end of a wake-up.
type WakingUp struct {
	// Deadline counts from the first moment with a ready node and the tunnel up. Default: 30m. At least 1m.
	// +optional
	Deadline *metav1.Duration `json:"deadline,omitempty"`
	// AfterDeadline says what happens then to hooks whose backend still does not answer. KeepOpen leaves them open and says
	// so in the condition; Restore gives them their own policy back by force, which may block the cluster. Default: KeepOpen.
	// +optional
	AfterDeadline *AfterDeadline `json:"afterDeadline,omitempty"`
}

// AfterDeadline says what happens to open hooks at the waking-up deadline.
type AfterDeadline string

const (
	// AfterDeadlineKeepOpen keeps hooks open until their backend answers.
	AfterDeadlineKeepOpen AfterDeadline = "KeepOpen"
	// AfterDeadlineRestore restores hooks by force.
	AfterDeadlineRestore AfterDeadline = "Restore"
)

// GoingDown configures a hibernation that does not come to its end.
type GoingDown struct {
	// Deadline counts from the begin of the hibernation. Then hooks with a ready backend are restored, unless an operation
	// on the Shoot is still running. Default: 1h. At least 10m.
	// +optional
	Deadline *metav1.Duration `json:"deadline,omitempty"`
}
