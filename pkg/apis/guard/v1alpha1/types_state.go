// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// StateRevision is the revision of GuardState that this binary writes. It is raised when a field is added whose loss would
// matter: 2 has claims. A binary that meets a higher one restores what it understands and writes no state.
const StateRevision = 2

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GuardState is the record in the Extension's status.state. gardenlet carries it through a control plane migration.
// Nothing in it is ever truncated.
type GuardState struct {
	metav1.TypeMeta `json:",inline"`

	// Revision is the StateRevision of the binary that wrote the state last.
	Revision int `json:"revision"`
	// Cycle is the running hibernation or wake-up; nil when none runs.
	// +optional
	Cycle *Cycle `json:"cycle,omitempty"`
	// Hooks are the hooks the guard has changed or is about to change, by HookKey.
	// +optional
	Hooks map[string]HookRecord `json:"hooks,omitempty"`
	// Claims are the objects in the Shoot on which the guard set the label that lifts Gardener's hibernation constraint, by
	// ClaimKey.
	// +optional
	Claims map[string]Claim `json:"claims,omitempty"`
	// LastGoodConfig is the providerConfig that was decoded last; used when a later one cannot be.
	// +optional
	LastGoodConfig *runtime.RawExtension `json:"lastGoodConfig,omitempty"`
}

// Direction of a cycle.
type Direction string

const (
	// DirectionHibernate is the direction of a cycle that gardenlet began with spec.hibernation.enabled=true.
	DirectionHibernate Direction = "Hibernate"
	// DirectionWakeUp is the direction of a cycle that gardenlet began with spec.hibernation.enabled=false.
	DirectionWakeUp Direction = "WakeUp"
)

// Cycle is one hibernation or wake-up, begun by gardenlet.
type Cycle struct {
	// Direction of the cycle.
	Direction Direction `json:"direction"`
	// Begun is when the first lifecycle call of the cycle came.
	Begun metav1.Time `json:"begun"`
	// FirstReadyNode is the first moment at which a node was ready and the tunnel was up; only in a wake-up.
	// +optional
	FirstReadyNode *metav1.Time `json:"firstReadyNode,omitempty"`
	// Attempts are the distinct gardener.cloud/timestamp values of the lifecycle calls that were held back, oldest first.
	// +optional
	Attempts []string `json:"attempts,omitempty"`
	// FirstHeldBack is when the first of Attempts was held back.
	// +optional
	FirstHeldBack *metav1.Time `json:"firstHeldBack,omitempty"`
	// LetGo says that hibernation was let go although a hook could not be opened.
	// +optional
	LetGo bool `json:"letGo,omitempty"`
	// MayNotWake names, when LetGo is set, the hooks that could not be opened and why.
	// +optional
	MayNotWake string `json:"mayNotWake,omitempty"`
	// HoldOnly marks a cycle that gardenlet did not begin: hooks were found on record, or open with our annotation, outside
	// of a flow. They are held and given back; no other hook is opened.
	// +optional
	HoldOnly bool `json:"holdOnly,omitempty"`
	// Ended is when the cycle ended with hooks still on record: at its deadline, or with hooks that are gone. Otherwise an
	// ended cycle is removed.
	// +optional
	Ended *metav1.Time `json:"ended,omitempty"`
}

// HookRecord is what must be known of a hook to give it back.
type HookRecord struct {
	// Kind is ValidatingWebhookConfiguration or MutatingWebhookConfiguration.
	Kind string `json:"kind"`
	// Configuration is the name of the configuration.
	Configuration string `json:"configuration"`
	// UID is the configuration's uid.
	UID types.UID `json:"uid"`
	// Hook is the name of the entry in webhooks[].
	Hook string `json:"hook"`
	// Backend is the Service behind the hook.
	// +optional
	Backend *Backend `json:"backend,omitempty"`
	// Original are the hook's own values.
	Original Original `json:"original"`
	// FormerOwners are the field managers that owned the two fields before the guard took them.
	// +optional
	FormerOwners []FieldOwner `json:"formerOwners,omitempty"`
	// Why says for what reason the hook was opened.
	// +optional
	Why string `json:"why,omitempty"`
	// Verdict on the backend before the sleep: Ready, NotReady, Unknown, or empty when it was not asked for, as for a hook
	// that was recorded after nodes had begun to go.
	// +optional
	Verdict string `json:"verdict,omitempty"`
	// VerdictReason is the reason of Verdict.
	// +optional
	VerdictReason string `json:"verdictReason,omitempty"`
	// Opened is when the API server first accepted our patch in this cycle.
	// +optional
	Opened *metav1.Time `json:"opened,omitempty"`
	// Returned is when the hook was back at its original in this cycle, by us or by its owner.
	// +optional
	Returned *metav1.Time `json:"returned,omitempty"`
	// ReturnedBy is Guard or Owner.
	// +optional
	ReturnedBy string `json:"returnedBy,omitempty"`
	// Gone says that the configuration or its entry was missing when the guard looked last.
	// +optional
	Gone bool `json:"gone,omitempty"`
	// Reopened counts how often the hook was opened again after it had been returned in this cycle; at most three.
	// +optional
	Reopened int `json:"reopened,omitempty"`
}

// Claim is what must be known of an object that carries the guard's label to take it off again.
type Claim struct {
	// Kind is ValidatingWebhookConfiguration, MutatingWebhookConfiguration, or ConfigMap for Kyverno's own.
	Kind string `json:"kind"`
	// Namespace of the object; empty for webhook configurations.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	Name string `json:"name"`
	// UID of the object: one of the same name that was created anew is not claimed.
	UID types.UID `json:"uid"`
	// Since is when the label was set first.
	Since metav1.Time `json:"since"`
	// Pending says that the label is about to be set: it goes on record first, and whether it was set is not known yet.
	// +optional
	Pending bool `json:"pending,omitempty"`
	// Removed counts how often somebody else took the label off. After the second time it is not set again.
	// +optional
	Removed int `json:"removed,omitempty"`
	// KeyAdded says of Kyverno's ConfigMap that it had no webhookLabels before.
	// +optional
	KeyAdded bool `json:"keyAdded,omitempty"`
}

// Backend names the Service behind a hook.
type Backend struct {
	// Namespace of the Service.
	Namespace string `json:"namespace"`
	// Name of the Service.
	Name string `json:"name"`
	// Port of the Service.
	Port int32 `json:"port"`
}

// Values of HookRecord.ReturnedBy.
const (
	// ReturnedByGuard says that the guard wrote the original back.
	ReturnedByGuard = "Guard"
	// ReturnedByOwner says that somebody else did.
	ReturnedByOwner = "Owner"
)

// Original is a hook's own policy and timeout.
type Original struct {
	// FailurePolicy is Fail or Ignore; nil in the API means Fail and is recorded as Fail.
	FailurePolicy admissionregistrationv1.FailurePolicyType `json:"failurePolicy"`
	// TimeoutSeconds is 1 to 30; nil in the API means 10 and is recorded as 10.
	TimeoutSeconds int32 `json:"timeoutSeconds"`
}

// FieldOwner names a managedFields entry that owned one or both of a hook's two fields.
type FieldOwner struct {
	// Manager is the field manager's name.
	Manager string `json:"manager"`
	// Operation is Apply or Update.
	Operation metav1.ManagedFieldsOperationType `json:"operation"`
	// Subresource of the entry; empty for webhook configurations in practice.
	// +optional
	Subresource string `json:"subresource,omitempty"`
	// Fields are failurePolicy, timeoutSeconds, or both.
	Fields []string `json:"fields"`
}

// Originals is the value of OriginalsAnnotation.
type Originals struct {
	// About tells a person what this is.
	About string `json:"about,omitempty"`
	// Hooks are the originals by hook name.
	Hooks map[string]Original `json:"hooks"`
}

// HookKey is the key of a hook in GuardState.Hooks.
func HookKey(kind, configuration string, uid types.UID, hook string) string {
	return kind + "/" + configuration + "/" + string(uid) + "/" + hook
}

// ClaimKey is the key of an object in GuardState.Claims.
func ClaimKey(kind, namespace, name string, uid types.UID) string {
	return kind + "/" + namespace + "/" + name + "/" + string(uid)
}
