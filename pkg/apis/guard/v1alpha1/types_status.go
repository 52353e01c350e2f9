// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxStatusHooks bounds GuardStatus.Hooks; the counts are of all hooks.
const MaxStatusHooks = 50

// MaxFindings bounds GuardStatus.Findings and GateStatus.Blocking.
const MaxFindings = 20

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GuardStatus is the Extension's status.providerStatus and, as YAML, the report in the Shoot's ConfigMap.
type GuardStatus struct {
	metav1.TypeMeta `json:",inline"`

	// Phase of the Shoot as the guard sees it.
	Phase string `json:"phase"`
	// Mode is Guard or Report.
	Mode Mode `json:"mode"`
	// Open counts the hooks that are open because of the guard.
	Open int32 `json:"open"`
	// Restored counts the hooks that the guard gave their own policy back in the current or last cycle.
	Restored int32 `json:"restored"`
	// RestoredByOwner counts the hooks that were given back by somebody else.
	RestoredByOwner int32 `json:"restoredByOwner"`
	// Message is one sentence on the whole.
	// +optional
	Message string `json:"message,omitempty"`
	// Gate tells whether Gardener lets the Shoot hibernate, as far as webhooks are concerned. It is judged while the Shoot is
	// awake.
	// +optional
	Gate *GateStatus `json:"gate,omitempty"`
	// Findings are warnings ahead: what may go wrong at the next sleep or wake-up, at most 20.
	// +optional
	Findings []Finding `json:"findings,omitempty"`
	// Hooks are the hooks worth a word, at most 50: what is open or wrong comes first.
	// +optional
	Hooks []HookStatus `json:"hooks,omitempty"`
	// More counts the hooks that Hooks has no room for.
	// +optional
	More int32 `json:"more,omitempty"`
}

// HookStatus is what there is to say about one hook.
type HookStatus struct {
	// Kind of the configuration.
	Kind string `json:"kind"`
	// Configuration is its name.
	Configuration string `json:"configuration"`
	// Hook is the entry's name.
	Hook string `json:"hook"`
	// State of the hook, for example Open, Stabilizing, Done, NotOpenable.
	State string `json:"state"`
	// Reason in one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message for a person.
	// +optional
	Message string `json:"message,omitempty"`
	// Original is present while the hook is on record.
	// +optional
	Original *Original `json:"original,omitempty"`
	// Since is when the hook was opened in this cycle.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// GateState says whether Gardener's check for problematic webhooks lets the Shoot hibernate.
type GateState string

const (
	// GateOpen: Gardener's check finds nothing, without any help of the guard.
	GateOpen GateState = "Open"
	// GateLifted: Gardener's check finds nothing, because of the guard's claims.
	GateLifted GateState = "Lifted"
	// GateClosed: Gardener's check finds at least one hook.
	GateClosed GateState = "Closed"
)

// GateStatus tells of the gate in front of hibernation.
type GateStatus struct {
	// State of the gate.
	State GateState `json:"state"`
	// Message is one sentence on the whole.
	// +optional
	Message string `json:"message,omitempty"`
	// Claimed counts the webhook configurations that carry the label because of the guard.
	// +optional
	Claimed int32 `json:"claimed,omitempty"`
	// Unguarded counts the hooks that Gardener's rule flags and nobody opens, although a label hides them from Gardener's check.
	// +optional
	Unguarded int32 `json:"unguarded,omitempty"`
	// Blocking are the hooks that keep the gate closed, or are hidden from Gardener's check and not opened by the guard, with
	// the reason and the remedy; at most 20.
	// +optional
	Blocking []Finding `json:"blocking,omitempty"`
}

// Finding is one thing a person should know or do.
type Finding struct {
	// Reason in one word, see the Finding… constants.
	Reason string `json:"reason"`
	// Kind of the object it is about.
	// +optional
	Kind string `json:"kind,omitempty"`
	// Name of the object.
	// +optional
	Name string `json:"name,omitempty"`
	// Hook is the entry in webhooks[], if it is about one.
	// +optional
	Hook string `json:"hook,omitempty"`
	// Message says what is found and what to do.
	Message string `json:"message"`
}
