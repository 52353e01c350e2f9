// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package scope_test

import (
	"math/rand/v2"
	"testing"

	"github.com/gardener/gardener/pkg/gardenlet/controller/shoot/care"
	"github.com/gardener/gardener/pkg/gardenlet/operation/botanist/matchers"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/scope"
)

// Whatever Gardener takes for problematic, and therefore refuses to hibernate a Shoot for, is in scope when a Service stands
// behind it and nobody excluded it.
func TestJudgeCoversWhatGardenerFlags(t *testing.T) {
	const rounds = 20_000
	g := NewWithT(t)
	random := generator{rand.New(rand.NewPCG(20260, 7))}
	var flagged, outside, inScopeOnly int
	for range rounds {
		w := random.webhook()
		h := hook.FromValidating(&admissionregistrationv1.ValidatingWebhookConfiguration{
			Webhooks: []admissionregistrationv1.ValidatingWebhook{w},
		})
		v := scope.Judge(h, h.Hooks[0], nil)
		problematic := care.IsProblematicWebhook(w.FailurePolicy, w.ObjectSelector, w.NamespaceSelector, w.Rules, w.TimeoutSeconds)
		switch {
		case problematic && !v.InScope:
			g.Expect(v.InScope).To(BeTrue(), "Gardener flags %+v", w)
		case problematic:
			flagged++
		case v.InScope:
			inScopeOnly++
		default:
			outside++
		}
	}
	// The generator is worth something only if it makes many hooks of each sort.
	g.Expect(flagged).To(BeNumerically(">", rounds/10))
	g.Expect(inScopeOnly).To(BeNumerically(">", rounds/10))
	g.Expect(outside).To(BeNumerically(">", rounds/50))
}

// Each resource that Gardener looks at is in scope by itself, so that a group that Gardener adds is noticed here.
func TestJudgeCoversEachResourceGardenerLooksAt(t *testing.T) {
	g := NewWithT(t)
	g.Expect(matchers.WebhookConstraintMatchers).NotTo(BeEmpty())
	for _, m := range append(matchers.WebhookConstraintMatchers, matchers.WebhookConstraintMatchersForLeases...) {
		resource := m.GVR.Resource
		if m.Subresource != "" {
			resource += "/" + m.Subresource
		}
		rules := []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{m.GVR.Group}, APIVersions: []string{m.GVR.Version}, Resources: []string{resource}},
		}}
		g.Expect(care.IsProblematicWebhook(nil, nil, nil, rules, nil)).To(BeTrue(), "%v", m.GVR)
		g.Expect(scope.Judge(hook.Configuration{}, hookWith(rules...), nil).InScope).To(BeTrue(), "%v", m.GVR)
	}
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

// groupsOf and resourcesOf mix what Gardener looks at with what it does not.
var groupsOf, resourcesOf = func() (groups, resources []string) {
	groups = []string{"", "*", "kyverno.io", "example.com", "metrics.k8s.io", "cert-manager.io", "batch", "storage.k8s.io"}
	resources = []string{"*", "*/*", "pods/*", "*/status", "pods/exec", "things", "jobs"}
	for _, m := range matchers.WebhookConstraintMatchers {
		groups, resources = append(groups, m.GVR.Group), append(resources, m.GVR.Resource)
		if m.Subresource != "" {
			resources = append(resources, m.GVR.Resource+"/"+m.Subresource)
		}
	}
	return groups, resources
}()

func (g generator) webhook() admissionregistrationv1.ValidatingWebhook {
	w := admissionregistrationv1.ValidatingWebhook{
		Name: "a.example.com",
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{Namespace: "hooks", Name: "hook"},
		},
		FailurePolicy:     one(g, nil, ptr.To(admissionregistrationv1.Fail), ptr.To(admissionregistrationv1.Ignore)),
		TimeoutSeconds:    one(g, nil, ptr.To(1+g.Int32N(30)), ptr.To(one[int32](g, 3, 4, 15, 16))),
		ObjectSelector:    g.selector(),
		NamespaceSelector: g.selector(),
	}
	outside := g.IntN(3) == 0
	for range g.IntN(4) {
		groups := some(g, groupsOf...)
		if outside {
			groups = some(g, "kyverno.io", "example.com", "metrics.k8s.io", "cert-manager.io")
		}
		w.Rules = append(w.Rules, admissionregistrationv1.RuleWithOperations{
			Operations: some(g, admissionregistrationv1.OperationAll, admissionregistrationv1.Create, admissionregistrationv1.Update,
				admissionregistrationv1.Delete, admissionregistrationv1.Connect),
			Rule: admissionregistrationv1.Rule{
				APIGroups:   groups,
				APIVersions: some(g, "*", "v1", "v1beta1", "v1beta2", "v1alpha1", "v2"),
				Resources:   some(g, resourcesOf...),
				Scope: one(g, nil, ptr.To(admissionregistrationv1.AllScopes), ptr.To(admissionregistrationv1.NamespacedScope),
					ptr.To(admissionregistrationv1.ClusterScope)),
			},
		})
	}
	return w
}

func (g generator) selector() *metav1.LabelSelector {
	key := one(g, "kubernetes.io/metadata.name", "gardener.cloud/purpose", "shoot.gardener.cloud/no-cleanup", "resources.gardener.cloud/origin", "app")
	values := some(g, "kube-system", "default", "true", "gardener", "x")
	switch g.IntN(6) {
	case 0:
		return nil
	case 1:
		return &metav1.LabelSelector{}
	case 2:
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: values[0]}}
	case 3:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: values}}}
	case 4:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpIn, Values: values}}}
	default:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: key, Operator: one(g, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)}}}
	}
}
