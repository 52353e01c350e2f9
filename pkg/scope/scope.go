// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package scope says which hooks the guard opens, and why it leaves the others alone. It decides about opening only: what is
// open because of the guard is given back whatever the scope says.
package scope

import (
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
)

// Reason of a verdict in one word.
type Reason string

const (
	// InScope: the hook could stand in the way of sleeping or waking up.
	InScope Reason = "InScope"
	// UserGuard: a rule of the GuardConfig says Guard.
	UserGuard Reason = "UserGuard"
	// UserLeave: a rule of the GuardConfig says Leave.
	UserLeave Reason = "UserLeave"
	// LeaveLabel: the configuration has the label v1alpha1.LeaveLabel with the value "true".
	LeaveLabel Reason = "LeaveLabel"
	// GardenerManaged: the configuration is Gardener's own.
	GardenerManaged Reason = "GardenerManaged"
	// URLBackend: the backend is a url; nothing in the cluster tells whether it answers, and it does not sleep with the cluster.
	URLBackend Reason = "URLBackend"
	// NoBackend: the hook names neither a Service nor a url.
	NoBackend Reason = "NoBackend"
	// DuplicateName: another hook of the configuration has the same name, so a patch keyed by name may hit the wrong one.
	DuplicateName Reason = "DuplicateName"
	// OutOfReach: no rule of the hook reaches an API group that sleeping or waking up needs.
	OutOfReach Reason = "OutOfReach"
)

// labelTrue is the value with which a label excludes a configuration.
const labelTrue = "true"

// groups are the API groups whose objects a cluster writes while it goes to sleep or wakes up: those of Kubernetes itself, and
// "*" of a rule, which means all. They include every group that Gardener's own check for problematic webhooks looks at.
var groups = sets.New(
	"", "extensions", "apps", "batch", "autoscaling", "policy",
	"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io",
	"authorization.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io",
	"flowcontrol.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io",
	"scheduling.k8s.io", "storage.k8s.io", "*",
)

// Verdict on one hook.
type Verdict struct {
	// InScope says whether the hook may be opened.
	InScope bool
	// Reason in one word.
	Reason Reason
	// Message for a person, one sentence.
	Message string
	// Reportable says whether a person should hear of the hook: it may be opened, or it may not although it could stand in the
	// way of sleeping or waking up and is not Gardener's own.
	Reportable bool
}

// Judge says whether the hook h of c may be opened. First come the exclusions no rule can override; then the first of the rules
// that matches decides; without one, a hook is in scope unless each of its rules names explicit API groups of which sleeping and
// waking up need none. Operations, resources, selectors and matchConditions do not count: deletions are part of going to sleep,
// and labels change while nobody looks.
func Judge(c hook.Configuration, h hook.Hook, rules []v1alpha1.WebhookRule) Verdict {
	reach := reaches(h)
	if reason, message := excluded(c, h); reason != "" {
		return Verdict{Reason: reason, Message: message, Reportable: reach && reason != GardenerManaged}
	}
	for i, rule := range rules {
		if !matches(rule, c, h) {
			continue
		}
		switch rule.Action {
		case v1alpha1.ActionGuard:
			return Verdict{InScope: true, Reason: UserGuard, Reportable: true,
				Message: fmt.Sprintf("webhooks[%d] of the GuardConfig says Guard.", i)}
		case v1alpha1.ActionLeave:
			return Verdict{Reason: UserLeave, Reportable: reach, Message: fmt.Sprintf("webhooks[%d] of the GuardConfig says Leave.", i)}
		}
	}
	if !reach {
		return Verdict{Reason: OutOfReach, Message: "No rule reaches an API group that sleeping or waking up needs."}
	}
	return Verdict{InScope: true, Reason: InScope, Reportable: true,
		Message: "The hook could stand in the way of sleeping or waking up."}
}

// excluded returns why the hook is never opened; empty if nothing speaks against it.
func excluded(c hook.Configuration, h hook.Hook) (Reason, string) {
	mark := gardenerMark(c)
	switch {
	case mark != "":
		return GardenerManaged, fmt.Sprintf("Gardener manages the configuration (%s).", mark)
	case c.Labels[v1alpha1.LeaveLabel] == labelTrue:
		return LeaveLabel, fmt.Sprintf("The configuration has the label %s=%s.", v1alpha1.LeaveLabel, labelTrue)
	case h.URL != "":
		return URLBackend, "The backend is a url, not a Service of the cluster."
	case h.Service == nil:
		return NoBackend, "The hook names neither a Service nor a url."
	case h.Duplicate:
		return DuplicateName, "Another hook of the configuration has the same name."
	}
	return "", ""
}

// gardenerMark returns by what Gardener marks the configuration as its own: gardener-resource-manager puts the annotation on all
// that it applies, its own webhooks have the app label, and the last one keeps an object from being deleted with the Shoot. The
// label resources.gardener.cloud/managed-by=gardener is no such mark: users set it to lift Gardener's hibernation constraint.
func gardenerMark(c hook.Configuration) string {
	_, applied := c.Annotations[resourcesv1alpha1.OriginAnnotation]
	switch {
	case applied:
		return "annotation " + resourcesv1alpha1.OriginAnnotation
	case c.Labels[v1beta1constants.LabelApp] == v1beta1constants.DeploymentNameGardenerResourceManager:
		return "label " + v1beta1constants.LabelApp + "=" + v1beta1constants.DeploymentNameGardenerResourceManager
	case c.Labels[v1beta1constants.ShootNoCleanup] == labelTrue:
		return "label " + v1beta1constants.ShootNoCleanup + "=" + labelTrue
	}
	return ""
}

// matches says whether the rule is about the hook, which has a Service.
func matches(rule v1alpha1.WebhookRule, c hook.Configuration, h hook.Hook) bool {
	if rule.Configuration == "" && rule.Hook == "" && rule.Namespace == "" {
		return false
	}
	return (rule.Configuration == "" || rule.Configuration == c.Name) &&
		(rule.Hook == "" || rule.Hook == h.Name) &&
		(rule.Namespace == "" || rule.Namespace == h.Service.Namespace)
}

// reaches says whether a rule of the hook could match an object that sleeping or waking up needs. A hook without rules is never
// called.
func reaches(h hook.Hook) bool {
	return slices.ContainsFunc(h.Rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
		return len(rule.APIGroups) == 0 || groups.HasAny(rule.APIGroups...)
	})
}
