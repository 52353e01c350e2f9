// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package gate_test tries the gate in front of hibernation with real Kyverno and Gardener's own checks.
package gate_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	fakekubernetes "github.com/gardener/gardener/pkg/client/kubernetes/fake"
	"github.com/gardener/gardener/pkg/gardenlet/controller/shoot/care"
	"github.com/gardener/gardener/pkg/gardenlet/operation/shoot"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/gate"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

func init() { logf.SetLogger(logr.Discard()) } // Gardener's flows would complain without one

type stage struct {
	*WithT
	ctx       context.Context
	bench     *bench.Bench
	gardenlet *bench.Gardenlet
}

func newStage(t *testing.T) *stage {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	t.Cleanup(cancel)
	s := &stage{WithT: NewWithT(t), ctx: ctx}
	var err error
	s.bench, err = bench.New(ctx, bench.Options{Log: testr.New(t), Kyverno: true})
	s.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(s.bench.Close()).To(Succeed()) })
	s.gardenlet = bench.NewGardenlet(s.bench, bench.GardenletOptions{Extension: true})
	t.Cleanup(s.gardenlet.Close)
	s.Expect(s.bench.Kyverno.RequireLabel(ctx, "require-team", "team", metav1.NamespaceDefault)).To(Succeed())
	s.Expect(s.bench.Kyverno.RefuseAnnotation(ctx, "all-kinds", "forbidden")).To(Succeed())
	return s
}

func (s *stage) connect() (kubernetes.Interface, bool, error) {
	return fakekubernetes.NewClientSetBuilder().WithClient(s.bench.Shoot.Client()).Build(), true, nil
}

func (s *stage) info() *gardencorev1beta1.Shoot {
	info := s.gardenlet.Shoot()
	info.Spec.Hibernation, info.Status.IsHibernated = nil, false
	info.Status.LastOperation = &gardencorev1beta1.LastOperation{
		Type: gardencorev1beta1.LastOperationTypeReconcile, State: gardencorev1beta1.LastOperationStateSucceeded,
	}
	return info
}

// hibernationPossible is what Gardener's own check says.
func (s *stage) hibernationPossible() string {
	info := s.info()
	sh := &shoot.Shoot{ControlPlaneNamespace: s.bench.Namespace}
	sh.SetInfo(info)
	check := care.NewConstraint(logr.Discard(), sh, fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).Build(), s.connect, clock.RealClock{})
	for _, c := range check.Check(s.ctx, care.NewShootConstraints(clock.RealClock{}, info)) {
		if c.Type == gardencorev1beta1.ShootHibernationPossible {
			return string(c.Status) + " " + c.Reason + ": " + c.Message
		}
	}
	return ""
}

// kyvernos are the configurations that Kyverno writes.
func (s *stage) kyvernos() []client.Object {
	var out []client.Object
	validating := &admissionregistrationv1.ValidatingWebhookConfigurationList{}
	mutating := &admissionregistrationv1.MutatingWebhookConfigurationList{}
	of := client.MatchingLabels{gate.KyvernoLabel: gate.KyvernoName}
	s.Expect(s.bench.Shoot.Client().List(s.ctx, validating, of)).To(Succeed())
	s.Expect(s.bench.Shoot.Client().List(s.ctx, mutating, of)).To(Succeed())
	for i := range validating.Items {
		out = append(out, &validating.Items[i])
	}
	for i := range mutating.Items {
		out = append(out, &mutating.Items[i])
	}
	return out
}

// labelled are the names of those that carry Gardener's label.
func (s *stage) labelled() []string {
	var names []string
	for _, o := range s.kyvernos() {
		if o.GetLabels()[v1alpha1.ClaimLabel] == v1alpha1.ClaimValue {
			names = append(names, o.GetName())
		}
	}
	return names
}

// webhookLabels is what Kyverno's ConfigMap says, and whether it says anything.
func (s *stage) webhookLabels() (string, bool) {
	o := &corev1.ConfigMap{}
	s.Expect(s.bench.Shoot.Client().Get(s.ctx, client.ObjectKey{Namespace: bench.KyvernoNamespace, Name: gate.KyvernoName}, o)).To(Succeed())
	value, has := o.Data[gate.KyvernoKey]
	return value, has
}

// expectGardenersRule expects our rule to say of Kyverno's real hooks what Gardener's says.
func (s *stage) expectGardenersRule() {
	flagged := 0
	expect := func(h hook.Hook, gardener bool) {
		s.Expect(gate.Problematic(h)).To(Equal(gardener), h.Name)
		if gardener {
			flagged++
		}
	}
	for _, o := range s.kyvernos() {
		switch o := o.(type) {
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			for i, w := range o.Webhooks {
				expect(hook.FromValidating(o).Hooks[i], care.IsProblematicWebhook(w.FailurePolicy, w.ObjectSelector, w.NamespaceSelector, w.Rules, w.TimeoutSeconds))
			}
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			for i, w := range o.Webhooks {
				expect(hook.FromMutating(o).Hooks[i], care.IsProblematicWebhook(w.FailurePolicy, w.ObjectSelector, w.NamespaceSelector, w.Rules, w.TimeoutSeconds))
			}
		}
	}
	s.Expect(flagged).To(BeNumerically(">", 0))
}

func TestKyvernoIsClaimedThroughItsConfigMap(t *testing.T) {
	s := newStage(t)
	s.Expect(s.hibernationPossible()).To(And(HavePrefix("False ProblematicWebhooks"), ContainSubstring("kyverno-resource-validating-webhook-cfg")))
	s.expectGardenersRule()
	s.Expect(s.labelled()).To(BeEmpty())
	_, before := s.webhookLabels()

	_, err := s.bench.StartController(s.ctx, bench.ControllerOptions{})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.gardenlet.Reconcile(s.ctx)).To(Succeed())
	s.Eventually(s.hibernationPossible, "30s").Should(HavePrefix("True"))
	s.Eventually(s.labelled, "10s").Should(HaveLen(len(s.kyvernos())), "all of Kyverno's configurations")
	labels, _ := s.webhookLabels()
	s.Expect(labels).To(MatchJSON(`{"resources.gardener.cloud/managed-by":"gardener"}`))

	versions := func() []string {
		var out []string
		for _, o := range s.kyvernos() {
			out = append(out, o.GetName()+" "+o.GetAnnotations()["gardener.cloud/warning"])
		}
		slices.Sort(out)
		return out
	}
	untouched := versions()
	s.Expect(care.NewWebhookRemediation(logr.Discard(), s.info(), s.connect).Remediate(s.ctx)).To(Succeed())
	s.Expect(versions()).To(Equal(untouched), "Gardener's remediator leaves them alone")

	s.gardenlet.StopAfter(bench.StepWaitHibernatedExtension)
	s.Expect(s.gardenlet.Hibernate(s.ctx)).To(MatchError(bench.ErrStopped))
	s.Expect(s.hibernationPossible()).To(HavePrefix("True"), "while hooks are set open")
	s.Expect(s.gardenlet.WakeUp(s.ctx)).To(Succeed())

	s.gardenlet.Edit(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Extensions = nil })
	s.Eventually(func() error { return s.gardenlet.Reconcile(s.ctx) }, "2m").Should(Succeed())
	s.Eventually(s.labelled, "30s").Should(BeEmpty(), "Kyverno takes the label off again")
	_, after := s.webhookLabels()
	s.Expect(after).To(Equal(before))
	s.Expect(s.hibernationPossible()).To(HavePrefix("False ProblematicWebhooks"))
}
