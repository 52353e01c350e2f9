// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/scope"
)

const (
	// KyvernoLabel with the value KyvernoName is on all configurations that Kyverno writes (kyverno 1.9 to 1.19: api/kyverno/constants.go).
	KyvernoLabel = "webhook.kyverno.io/managed-by"
	// KyvernoName is the value of KyvernoLabel, and the name of Kyverno's ConfigMap in the namespace of its Service.
	KyvernoName = "kyverno"
	// KyvernoKey is the key in that ConfigMap under which Kyverno 1.12 and newer reads the labels of its configurations: a JSON object
	// of strings.
	KyvernoKey = "webhookLabels"

	configMap = "ConfigMap"
	// maxRemoved is how often somebody else may take a claim's label off; then it is not set again.
	maxRemoved = 2
)

// Hook is what there is to say about a hook of a Subject.
type Hook struct {
	// Scope of the hook.
	Scope scope.Verdict
	// Cannot is why the guard does not open the hook although it is in scope; empty if it does.
	Cannot string
	// Original are the hook's own values while it is on record, nil otherwise.
	Original *hook.Values
}

// Subject is a configuration with what there is to say about its hooks, in their order.
type Subject struct {
	Configuration hook.Configuration
	Hooks         []Hook
}

// Settings in force.
type Settings struct {
	// Left is why nothing is to be claimed, and what is claimed is to be given up; nil if claims are wanted.
	Left *v1alpha1.Finding
	// Frozen is why nothing is claimed and nothing given up now; empty if both may be done.
	Frozen string
	// KyvernoLabels says that the label may be set in Kyverno's ConfigMap.
	KyvernoLabels bool
}

// ConfigMap is Kyverno's, as it was read.
type ConfigMap struct {
	// Namespace it was looked for in.
	Namespace string
	// Found is false if there is none; Err is why it could not be read, empty if it could.
	Found bool
	Err   string
	// UID and ResourceVersion of the ConfigMap.
	UID             types.UID
	ResourceVersion string
	// GardenerManaged says that gardener-resource-manager applies it.
	GardenerManaged bool
	// Labels is the value of KyvernoKey, nil if the key is absent.
	Labels *string
	// Managers are the field managers that own that value; Appliers are those among them that applied it server-side.
	Managers, Appliers []string
}

// Input is all that is decided on.
type Input struct {
	// Now is the time of the pass.
	Now time.Time
	// Subjects are all configurations of the Shoot.
	Subjects []Subject
	// Claims on record.
	Claims map[string]v1alpha1.Claim
	// Settings in force.
	Settings Settings
	// ConfigMap of Kyverno; nil as long as it was not read.
	ConfigMap *ConfigMap
	// Failures are the API server's words on patches of this pass, by claim key. They are not tried again in it.
	Failures map[string]string
	// KyvernoSlow says that Kyverno, although it is ready, has not put the label on its configurations for several passes.
	KyvernoSlow bool
}

// Action is a patch to an object that is claimed or given up. Set: the claim must be on durable record before it is sent.
type Action struct {
	// Key of the claim.
	Key string
	// Set says whether the label is set or removed.
	Set bool
	// Configuration the patch is for; nil if it is for the ConfigMap.
	Configuration *hook.Configuration
	// ConfigMap the patch is for; nil if it is for a configuration.
	ConfigMap *ConfigMap
}

// Result of a decision.
type Result struct {
	// Claims are what must be on record from now on.
	Claims map[string]v1alpha1.Claim
	// Actions to take.
	Actions []Action
	// ReadConfigMap is the namespace of Kyverno's ConfigMap if that must be read to decide; empty otherwise.
	ReadConfigMap string
	// KyvernoWaits says that the label stands in the ConfigMap, and not yet on all of Kyverno's configurations.
	KyvernoWaits bool
	// Status of the gate.
	Status v1alpha1.GateStatus
}
