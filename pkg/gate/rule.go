// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package gate is the gate in front of hibernation: Gardener's own rule for webhooks that keep a Shoot from hibernating, on which
// objects the guard sets and removes the label by which Gardener's check leaves them out, and the warnings ahead. It decides on
// values; the caller reads and writes.
package gate

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
)

// Timeouts in seconds up to which Gardener does not mind a hook that is Ignore, and one on leases in kube-system whatever its
// policy (gardener v1.149.3: pkg/gardenlet/controller/shoot/care/constraints.go).
const (
	maxTimeout      int32 = 15
	maxLeaseTimeout int32 = 3
)

// place is where Gardener looks for objects of a resource: the labels that it takes their namespace and the objects themselves to
// have. nil matches every selector.
type place struct {
	clusterScoped          bool
	namespaceLabels        labels.Set
	objectLabels           labels.Set
	selectedAsOneNamespace bool // a Namespace: the namespaceSelector is asked although it is cluster-scoped
}

// critical is a resource that a cluster needs to wake up.
type critical struct {
	group     string
	versions  []string
	resources []string // with subresources
	place     place
}

var (
	labelsOfDefault    = labels.Set{corev1.LabelMetadataName: metav1.NamespaceDefault}
	labelsOfKubeSystem = labels.Set{
		v1beta1constants.ShootNoCleanup:  "true",
		v1beta1constants.GardenerPurpose: metav1.NamespaceSystem,
		corev1.LabelMetadataName:         metav1.NamespaceSystem,
	}
	labelsOfPods = labels.Set{v1beta1constants.ShootNoCleanup: "true", "origin": "gardener"}

	kubeSystem       = place{namespaceLabels: labelsOfKubeSystem}
	defaultNamespace = place{namespaceLabels: labelsOfDefault}
	cluster          = place{clusterScoped: true}
	namespaceItself  = place{clusterScoped: true, namespaceLabels: labelsOfKubeSystem, objectLabels: labelsOfKubeSystem, selectedAsOneNamespace: true}
)

// criticalResources and criticalLeases are those of gardener v1.149.3: pkg/gardenlet/operation/botanist/matchers/matcher.go.
var (
	criticalResources = []critical{
		{"", []string{"v1"}, []string{"pods", "pods/status"}, place{namespaceLabels: labelsOfKubeSystem, objectLabels: labelsOfPods}},
		{"", []string{"v1"}, []string{"configmaps", "endpoints", "secrets", "serviceaccounts", "services", "services/status"}, kubeSystem},
		{"", []string{"v1"}, []string{"endpoints", "services", "services/status"}, defaultNamespace},
		{"", []string{"v1"}, []string{"nodes", "nodes/status"}, cluster},
		{"", []string{"v1"}, []string{"namespaces", "namespaces/status"}, namespaceItself},
		{"apps", []string{"v1", "v1beta1", "v1beta2"}, workloads("daemonsets/status", "replicasets/status"), kubeSystem},
		{"extensions", []string{"v1beta1"}, workloads("daemonsets/status", "replicasets/status", "networkpolicies"), kubeSystem},
		{"coordination.k8s.io", []string{"v1", "v1beta1"}, []string{"leases"}, place{}},
		{"networking.k8s.io", []string{"v1", "v1beta1"}, []string{"networkpolicies"}, kubeSystem},
		{"rbac.authorization.k8s.io", []string{"v1", "v1alpha1", "v1beta1"}, []string{"clusterroles", "clusterrolebindings"}, cluster},
		{"rbac.authorization.k8s.io", []string{"v1", "v1alpha1", "v1beta1"}, []string{"roles", "rolebindings"}, kubeSystem},
		{"apiextensions.k8s.io", []string{"v1", "v1beta1"}, []string{"customresourcedefinitions", "customresourcedefinitions/status"}, cluster},
		{"apiregistration.k8s.io", []string{"v1", "v1beta1"}, []string{"apiservices", "apiservices/status"}, cluster},
		{"certificates.k8s.io", []string{"v1"}, []string{
			"certificatesigningrequests", "certificatesigningrequests/status", "certificatesigningrequests/approval"}, cluster},
		{"scheduling.k8s.io", []string{"v1", "v1beta1"}, []string{"priorityclasses"}, cluster},
	}
	criticalLeases = []critical{
		{"coordination.k8s.io", []string{"v1", "v1beta1"}, []string{"leases"}, place{namespaceLabels: labelsOfKubeSystem, objectLabels: labels.Set{}}},
	}
)

func workloads(also ...string) []string {
	return append([]string{
		"controllerrevisions", "daemonsets", "deployments", "deployments/scale", "replicasets", "replicasets/scale"}, also...)
}

// Problematic says whether Gardener takes the hook for one that may keep a Shoot from waking up: its own rule
// (care.IsProblematicWebhook of gardener v1.149.3), label and annotations of the configuration aside.
func Problematic(h hook.Hook) bool {
	if (h.NoTimeout || h.Values.Timeout > maxLeaseTimeout) && reachesAny(h, criticalLeases) {
		return true
	}
	if h.Values.Policy != admissionregistrationv1.Fail && !h.NoTimeout && h.Values.Timeout <= maxTimeout {
		return false
	}
	return reachesAny(h, criticalResources)
}

func reachesAny(h hook.Hook, resources []critical) bool {
	if len(h.Rules) == 0 {
		return false
	}
	inNamespace, err := selector(h.NamespaceSelector)
	ofObject, err2 := selector(h.ObjectSelector)
	if err != nil || err2 != nil {
		return true // as Gardener, which expects no such selector
	}
	return slices.ContainsFunc(resources, func(c critical) bool {
		if !selects(ofObject, c.place.objectLabels) {
			return false
		}
		if (!c.place.clusterScoped || c.place.selectedAsOneNamespace) && !selects(inNamespace, c.place.namespaceLabels) {
			return false
		}
		return slices.ContainsFunc(h.Rules, func(r admissionregistrationv1.RuleWithOperations) bool { return reaches(r, c) })
	})
}

func selector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}

func selects(s labels.Selector, set labels.Set) bool {
	return set == nil || s.Empty() || s.Matches(set)
}

// reaches says whether the rule is about creating or updating one of the resources.
func reaches(r admissionregistrationv1.RuleWithOperations, c critical) bool {
	return inScope(r.Scope, c.place.clusterScoped) && writes(r.Operations) && oneOf(r.APIGroups, c.group) &&
		slices.ContainsFunc(c.versions, func(v string) bool { return oneOf(r.APIVersions, v) }) &&
		slices.ContainsFunc(c.resources, func(resource string) bool { return names(r.Resources, resource) })
}

func inScope(scope *admissionregistrationv1.ScopeType, clusterScoped bool) bool {
	switch {
	case scope == nil || *scope == admissionregistrationv1.AllScopes:
		return true
	case *scope == admissionregistrationv1.ClusterScope:
		return clusterScoped
	case *scope == admissionregistrationv1.NamespacedScope:
		return !clusterScoped
	}
	return false
}

func writes(operations []admissionregistrationv1.OperationType) bool {
	return slices.ContainsFunc(operations, func(o admissionregistrationv1.OperationType) bool {
		return o == admissionregistrationv1.OperationAll || o == admissionregistrationv1.Create || o == admissionregistrationv1.Update
	})
}

func oneOf(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return p == "*" || p == name })
}

// names says whether a pattern, such as pods, pods/*, */status or *, names the resource, with its subresource if it has one.
func names(patterns []string, resource string) bool {
	name, sub, _ := strings.Cut(resource, "/")
	return slices.ContainsFunc(patterns, func(p string) bool {
		ofName, ofSub, _ := strings.Cut(p, "/")
		return (ofName == "*" || ofName == name) && (ofSub == "*" || ofSub == sub)
	})
}
