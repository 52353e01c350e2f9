// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/gate"
)

const (
	// ServiceAccount of the extension in the Shoot, in the namespace kube-system. The token requestor of
	// gardener-resource-manager makes it.
	ServiceAccount = v1alpha1.ExtensionType
	// User is its name in the Shoot's audit log.
	User = "system:serviceaccount:" + metav1.NamespaceSystem + ":" + ServiceAccount
	// RoleName is the name of the ClusterRole, the Roles and their bindings in the Shoot.
	RoleName = "extensions.gardener.cloud:extension-" + v1alpha1.ExtensionType
)

// Rules are what the extension may do in a Shoot, by namespace; "" is for the whole cluster. It uses all of it, and nothing else.
func Rules() map[string][]rbacv1.PolicyRule {
	return map[string][]rbacv1.PolicyRule{
		"": {
			// The webhooks: watched while some are open, read again after a conflict.
			rule(admissionregistrationv1.GroupName, []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"},
				"get", "list", "watch", "patch"),
			// What stands behind them. Backends may be in any namespace.
			rule(corev1.GroupName, []string{"nodes", "pods"}, "list", "watch"),
			rule(corev1.GroupName, []string{"services"}, "get", "list", "watch"),
			rule(discoveryv1.GroupName, []string{"endpointslices"}, "list", "watch"),
			rule(corev1.GroupName, []string{"namespaces"}, "get"),
			// Kyverno labels its configurations itself, as this ConfigMap says.
			named(rule(corev1.GroupName, []string{"configmaps"}, "get", "patch"), gate.KyvernoName),
		},
		corev1.NamespaceNodeLease: {
			rule(coordinationv1.GroupName, []string{"leases"}, "list", "watch"),
		},
		v1alpha1.ReportNamespace: {
			named(rule(corev1.GroupName, []string{"configmaps"}, "get", "patch"), v1alpha1.ReportName),
			rule(corev1.GroupName, []string{"configmaps"}, "create"), // cannot be restricted to a name
		},
		metav1.NamespaceDefault: { // where events on objects without a namespace belong
			rule(eventsv1.GroupName, []string{"events"}, "create"),
		},
	}
}

func rule(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

func named(r rbacv1.PolicyRule, name string) rbacv1.PolicyRule {
	r.ResourceNames = []string{name}
	return r
}

// Objects grant the Rules to the ServiceAccount.
func Objects() []client.Object {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: ServiceAccount}}
	ref := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: RoleName}
	}
	var objects []client.Object
	for namespace, rules := range Rules() {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: RoleName}
		if namespace == "" {
			objects = append(objects, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
				&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref("ClusterRole"), Subjects: subjects})
			continue
		}
		objects = append(objects, &rbacv1.Role{ObjectMeta: meta, Rules: rules},
			&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref("Role"), Subjects: subjects})
	}
	return objects
}
