// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gardener/gardener/pkg/gardenlet/controller/shoot/care"
	"github.com/gardener/gardener/pkg/gardenlet/operation/botanist/matchers"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/gate"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
)

// Gardener's rule and ours say the same of any hook.
func TestProblematicIsGardenersRule(t *testing.T) {
	const rounds = 40_000
	g := NewWithT(t)
	random := generator{rand.New(rand.NewPCG(1, 149))}
	said := map[bool]int{}
	for range rounds {
		w := random.webhook()
		problematic := care.IsProblematicWebhook(w.FailurePolicy, w.ObjectSelector, w.NamespaceSelector, w.Rules, w.TimeoutSeconds)
		g.Expect(gate.Problematic(hookOf(w))).To(Equal(problematic), "%+v", w)
		said[problematic]++
	}
	g.Expect(said[true]).To(BeNumerically(">", rounds/5))
	g.Expect(said[false]).To(BeNumerically(">", rounds/5))
}

// Each resource that Gardener looks at, alone, with each selector, operation and scope that tells places apart.
func TestProblematicKnowsEachOfGardenersResources(t *testing.T) {
	g := NewWithT(t)
	random := generator{rand.New(rand.NewPCG(2, 149))}
	flagged := 0
	for _, m := range append(matchers.WebhookConstraintMatchers, matchers.WebhookConstraintMatchersForLeases...) {
		resource := m.GVR.Resource
		if m.Subresource != "" {
			resource += "/" + m.Subresource
		}
		for range 60 {
			w := random.webhook()
			w.Rules = []admissionregistrationv1.RuleWithOperations{{
				Operations: some(random, admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete),
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{m.GVR.Group}, APIVersions: []string{m.GVR.Version}, Resources: []string{resource}, Scope: random.scope(),
				},
			}}
			problematic := care.IsProblematicWebhook(w.FailurePolicy, w.ObjectSelector, w.NamespaceSelector, w.Rules, w.TimeoutSeconds)
			g.Expect(gate.Problematic(hookOf(w))).To(Equal(problematic), "%+v", w)
			if problematic {
				flagged++
			}
		}
	}
	g.Expect(flagged).To(BeNumerically(">", 1000))
}

func hookOf(w admissionregistrationv1.ValidatingWebhook) hook.Hook {
	return hook.FromValidating(&admissionregistrationv1.ValidatingWebhookConfiguration{
		Webhooks: []admissionregistrationv1.ValidatingWebhook{w},
	}).Hooks[0]
}

type generator struct{ *rand.Rand }

func one[T any](g generator, of ...T) T { return of[g.IntN(len(of))] }

// some are one to three of the given, the same one perhaps twice.
func some[T any](g generator, of ...T) []T {
	var list []T
	for range 1 + g.IntN(3) {
		list = append(list, one(g, of...))
	}
	return list
}

// groups, versions and resources are those Gardener looks at, and some that it does not.
var groups, versions, resources = func() (groups, versions, resources []string) {
	groups = []string{"", "", "*", "*", "kyverno.io", "batch"}
	versions = []string{"*", "*", "v1", "v2"}
	resources = []string{"*", "*/*", "pods/*", "*/status", "*/scale", "pods/exec", "things", "nodes", "leases"}
	for _, m := range matchers.WebhookConstraintMatchers {
		groups, versions = append(groups, m.GVR.Group), append(versions, m.GVR.Version)
		resources = append(resources, m.GVR.Resource)
		if m.Subresource != "" {
			resources = append(resources, m.GVR.Resource+"/"+m.Subresource)
		}
	}
	return groups, versions, resources
}()

func (g generator) scope() *admissionregistrationv1.ScopeType {
	return one(g, nil, nil, ptr.To(admissionregistrationv1.AllScopes), ptr.To(admissionregistrationv1.NamespacedScope),
		ptr.To(admissionregistrationv1.ClusterScope), ptr.To(admissionregistrationv1.ScopeType("Other")))
}

func (g generator) webhook() admissionregistrationv1.ValidatingWebhook {
	w := admissionregistrationv1.ValidatingWebhook{
		Name:              "a.example.com",
		FailurePolicy:     one(g, nil, ptr.To(admissionregistrationv1.Fail), ptr.To(admissionregistrationv1.Ignore)),
		TimeoutSeconds:    one(g, nil, ptr.To(1+g.Int32N(30)), ptr.To(one[int32](g, 3, 4, 15, 16))),
		ObjectSelector:    g.selector(),
		NamespaceSelector: g.selector(),
	}
	for range g.IntN(5) {
		w.Rules = append(w.Rules, admissionregistrationv1.RuleWithOperations{
			Operations: some(g, admissionregistrationv1.OperationAll, admissionregistrationv1.Create, admissionregistrationv1.Update,
				admissionregistrationv1.Delete, admissionregistrationv1.Connect),
			Rule: admissionregistrationv1.Rule{
				APIGroups: some(g, groups...), APIVersions: some(g, versions...), Resources: some(g, resources...), Scope: g.scope(),
			},
		})
	}
	return w
}

func (g generator) selector() *metav1.LabelSelector {
	key := one(g, "kubernetes.io/metadata.name", "gardener.cloud/purpose", "shoot.gardener.cloud/no-cleanup", "origin", "app")
	values := some(g, "kube-system", "default", "true", "gardener", "x")
	operator := one(g, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpIn)
	switch g.IntN(8) {
	case 0, 1:
		return nil
	case 2:
		return &metav1.LabelSelector{}
	case 3:
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: values[0]}}
	case 4, 5:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	case 6:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: key, Operator: one(g, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)}}}
	default: // invalid: In without values
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpIn}}}
	}
}
