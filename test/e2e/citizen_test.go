//go:build e2e

// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"slices"
	"testing"
	"time"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

// citizen is a Shoot with Kyverno in a garden with the real gardener-apiserver; gardenlet cares for it, and the extension may tell
// the garden.
type citizen struct {
	*stage
	garden *bench.Garden
}

func newCitizen(t *testing.T) *citizen {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	t.Cleanup(cancel)
	c := &citizen{stage: &stage{WithT: NewWithT(t), parent: t, t: t, ctx: ctx, patience: 3 * time.Minute}}
	var err error
	c.bench, err = bench.New(ctx, bench.Options{Kyverno: true, SeedCRDs: slices.Concat(bench.DefaultSeedCRDs, bench.CareSeedCRDs)})
	c.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(c.bench.Close()).To(Succeed()) })
	t.Cleanup(c.showLogs)
	c.witness, err = c.bench.Witness(ctx)
	c.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(c.witness.Close)
	c.garden, err = bench.NewGarden(ctx, logr.Discard())
	c.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(c.garden.Close()).To(Succeed()) })
	options := bench.GardenletOptions{Garden: c.garden, OnStep: c.showFailure}
	c.Expect(c.garden.CreateShoot(ctx, c.bench, options)).To(Succeed())
	c.Expect(c.garden.InstallExtension(ctx)).To(Succeed())
	c.gardenlet = bench.NewGardenlet(c.bench, options)
	t.Cleanup(c.gardenlet.Close)
	c.controller, err = c.bench.StartController(ctx, bench.ControllerOptions{Config: careOften, Garden: c.garden})
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(c.gardenlet.Reconcile(ctx)).To(Succeed())
	c.Expect(c.bench.Kyverno.RequireLabel(ctx, "require-team", "team", metav1.NamespaceDefault)).To(Succeed())
	c.Expect(c.bench.Kyverno.RefuseAnnotation(ctx, "all-kinds", "forbidden")).To(Succeed())
	return c
}

// cares lets gardenlet look at the Shoot once.
func (c *citizen) cares() {
	c.t.Helper()
	c.Expect(c.gardenlet.Care(c.ctx, nil)).To(Succeed())
}

// constraint in the status of the Shoot in the garden, as `status reason`; empty: there is none.
func (c *citizen) constraint(constraintType gardencorev1beta1.ConditionType) string {
	return said(v1beta1helper.GetCondition(c.gardenlet.Shoot().Status.Constraints, constraintType))
}

func (c *citizen) shootCondition() string {
	return said(v1beta1helper.GetCondition(c.gardenlet.Shoot().Status.Conditions, gardencorev1beta1.ShootSystemComponentsHealthy))
}

func said(condition *gardencorev1beta1.Condition) string {
	if condition == nil {
		return ""
	}
	return string(condition.Status) + " " + condition.Reason
}

// possible lets gardenlet look and says whether the Shoot may hibernate.
func (c *citizen) possible() string {
	c.cares()
	return c.constraint(gardencorev1beta1.ShootHibernationPossible)
}

// tries to hibernate as the Shoot's owner does: only the edit.
func (c *citizen) tries(enabled bool) error {
	return c.gardenlet.TryEdit(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Hibernation.Enabled = &enabled })
}

// eventually waits as long as a story has patience.
func (c *citizen) eventually(what func() string) AsyncAssertion {
	return c.Eventually(what).WithTimeout(c.patience).WithPolling(time.Second)
}

// claimed are the webhook configurations that carry the label by which Gardener's check leaves them out.
func (c *citizen) claimed() (names []string) {
	list := &admissionregistrationv1.ValidatingWebhookConfigurationList{}
	c.Expect(c.bench.Shoot.Client().List(c.ctx, list, client.MatchingLabels{v1alpha1.ClaimLabel: v1alpha1.ClaimValue})).To(Succeed())
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	return names
}

func TestShootWithKyvernoBecomesACitizen(t *testing.T) {
	c := newCitizen(t)
	const enforced, prepared = v1alpha1.ConstraintWebhooksEnforced, v1alpha1.ConstraintHibernationPrepared

	c.eventually(c.possible).Should(Equal("False ProblematicWebhooks"), "without the extension")
	c.Expect(c.tries(true)).To(MatchError(ContainSubstring("'HibernationPossible' constraint is 'False'")))
	c.Expect(c.constraint(enforced)).To(BeEmpty())

	c.Expect(c.gardenlet.TryEdit(func(shoot *gardencorev1beta1.Shoot) {
		shoot.Spec.Extensions = []gardencorev1beta1.Extension{{Type: bench.ExtensionType, ProviderConfig: &runtime.RawExtension{Raw: []byte(shortStabilization)}}}
	})).To(Succeed())
	c.reconcile()
	c.eventually(c.possible).Should(HavePrefix("True"), "with the extension")
	c.eventually(func() string { return c.constraint(prepared) }).Should(Equal("True " + v1alpha1.ReasonGateLifted))
	c.eventually(func() string { return c.constraint(enforced) }).Should(Equal("True " + v1alpha1.ReasonEnforced))
	before, err := c.bench.Snapshot(c.ctx)
	c.Expect(err).NotTo(HaveOccurred())

	c.Expect(c.tries(true)).To(Succeed(), "the same edit is accepted now")
	c.hibernate()
	c.expectOpenAsleep(kyvernoResources)
	c.cares()
	c.Expect(c.shootCondition()).To(Equal("True ConditionNotChecked"))
	c.eventually(func() string { return c.constraint(enforced) }).Should(Equal("False "+v1alpha1.ReasonAsleep), "visible while asleep")
	c.Expect(c.constraint(prepared)).To(Equal("True " + v1alpha1.ReasonGateLifted))

	c.wakeUp()
	c.seesFailOpen()
	c.expectWhole(before, kyvernoOwned)
	c.expectPoliciesBite()
	c.eventually(func() string { return c.constraint(enforced) }).Should(Equal("True " + v1alpha1.ReasonEnforced))
	c.cares()
	c.Expect(c.shootCondition()).NotTo(ContainSubstring("Extension"), "other checks are seen again")
	c.Expect(c.possible()).To(HavePrefix("True"))

	c.Expect(c.gardenlet.TryEdit(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Extensions = nil })).To(Succeed())
	c.reconcile()
	c.eventually(func() string {
		if c.extension() != nil {
			return "still there"
		}
		return ""
	}).Should(BeEmpty())
	c.Expect(c.constraint(enforced)+c.constraint(prepared)).To(BeEmpty(), "removed with the extension")
	c.eventually(func() string { return firstOf(c.claimed()) }).Should(BeEmpty(), "Kyverno takes the labels off")
	c.eventually(c.possible).Should(Equal("False ProblematicWebhooks"))
	c.Expect(c.tries(true)).NotTo(Succeed())
}

// seesFailOpen expects that gardenlet shows the extension's condition in the Shoot's status as long as hooks are open, if they
// still are.
func (c *citizen) seesFailOpen() {
	if c.condition() != "Progressing "+v1alpha1.ReasonFailOpen {
		c.t.Log("all is given back already")
		return
	}
	c.cares()
	c.Expect(c.shootCondition()).To(Equal("Progressing Extension" + v1alpha1.ReasonFailOpen))
}

func firstOf(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}
