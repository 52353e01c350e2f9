// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
)

// withFlagged adds a configuration that Gardener flags: on-nodes, with the hooks nodes (Fail) and harmless (Ignore).
func withFlagged(s *theShoot) {
	s.validating("on-nodes", hookOf{name: "nodes", policy: "Fail", timeout: 10, resource: "nodes"},
		hookOf{name: "harmless", policy: "Ignore", timeout: 10, resource: "nodes"})
}

// newFlaggedShoot begins a story with a Shoot that Gardener does not let hibernate, before the extension is enabled.
func newFlaggedShoot(t *testing.T, options ...option) (*theShoot, gardener) {
	t.Helper()
	s := newShootWithoutExtension(t, options...)
	withFlagged(s)
	g := s.gardener()
	s.Expect(g.hibernationPossible()).To(And(HavePrefix("False ProblematicWebhooks"), ContainSubstring(s.full("on-nodes"))))
	s.before = s.snapshot()
	return s, g
}

// enabled is the extension's first reconciliation.
func (s *theShoot) enabled() {
	s.t.Helper()
	s.flow(gardencorev1beta1.LastOperationTypeReconcile, false)
	s.call()
	s.flowEnds()
}

// label is the value of Gardener's label on a configuration, and the managers that own it.
func (s *theShoot) label(name string) string {
	o := s.read(name)
	value, has := o.Labels[v1alpha1.ClaimLabel]
	if !has {
		return ""
	}
	return fmt.Sprintf("%s by %v", value, hook.Managers(o.ManagedFields, "f:metadata", "f:labels", "f:"+v1alpha1.ClaimLabel))
}

const ourLabel = "gardener by [shoot-hibernation-guard-claim]"

// setLabel sets or removes the label as a person or tool would.
func (s *theShoot) setLabel(name, manager string, value any) {
	s.t.Helper()
	if value != nil {
		value = fmt.Sprintf("%q", value)
	} else {
		value = "null"
	}
	o := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	o.Name = s.full(name)
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, v1alpha1.ClaimLabel, value)
	s.Expect(s.shoot().Patch(s.ctx, o, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(manager))).To(Succeed())
}

// gateSays is the gate's state with the reasons of what blocks it.
func (s *theShoot) gateSays() string {
	status := s.guardStatus().Gate
	if status == nil {
		return ""
	}
	out := []string{string(status.State)}
	for _, f := range status.Blocking {
		out = append(out, f.Reason)
	}
	return strings.Join(out, " ")
}

func (s *theShoot) claimed() []string {
	var out []string
	for _, c := range s.state().Claims {
		out = append(out, strings.TrimSuffix(c.Name, "."+s.name)+map[bool]string{true: " pending"}[c.Pending])
	}
	return out
}

func TestGateIsOpenedForWhatTheGuardOpens(t *testing.T) {
	s, g := newFlaggedShoot(t)
	before := s.read("on-nodes")
	s.enabled()
	s.Eventually(g.hibernationPossible).Should(HavePrefix("True"))
	s.Expect(s.label("on-nodes")).To(Equal(ourLabel))
	s.Eventually(s.claimed).Should(ConsistOf("on-nodes"))
	s.Eventually(s.gateSays).Should(Equal("Lifted"))
	s.Expect(s.guardStatus().Gate.Claimed).To(BeEquivalentTo(1))
	s.Expect(s.condition()).To(HavePrefix("True WebhooksEnforced"))
	s.Expect(g.constraint(gardencorev1beta1.ShootMaintenancePreconditionsSatisfied)).To(HavePrefix("True"), "the label silences it, too")

	s.hibernates()
	s.Expect(g.hibernationPossible()).To(HavePrefix("True"), "in the state in which hooks are open")
	s.wakesUp()
	s.nodesJoin()
	s.Eventually(s.changed).Should(BeEmpty(), "but for the claim")
	s.Eventually(s.gateSays).Should(Equal("Lifted"))
	s.Expect(g.hibernationPossible()).To(HavePrefix("True"))
	s.Expect(s.label("on-nodes")).To(Equal(ourLabel))

	s.flowBegins(false)
	s.disabled()
	s.Eventually(s.find).Should(BeNil())
	after := s.read("on-nodes")
	s.Expect(after.Labels).To(Equal(before.Labels))
	s.Expect(after.Webhooks).To(Equal(before.Webhooks))
	s.Expect(s.leftovers()).To(BeEmpty())
	s.Expect(hook.Managers(after.ManagedFields)).NotTo(ContainElement(v1alpha1.ClaimFieldManager))
	s.Expect(g.hibernationPossible()).To(HavePrefix("False ProblematicWebhooks"))
}

func TestRemediatorLeavesWhatIsClaimedAlone(t *testing.T) {
	s, g := newFlaggedShoot(t)
	s.enabled()
	s.Eventually(func() string { return s.label("on-nodes") }).Should(Equal(ourLabel))
	claimed := s.read("on-nodes")
	g.remediates()
	s.Expect(s.read("on-nodes").ResourceVersion).To(Equal(claimed.ResourceVersion))
	s.setLabel("on-nodes", "somebody", nil)
	g.remediates()
	s.Expect(*s.read("on-nodes").Webhooks[0].FailurePolicy).To(Equal(admissionregistrationv1.Ignore))
	s.Expect(g.hibernationPossible()).To(HavePrefix("False RemediatedWebhooks"))
	s.later(time.Minute)
	s.Eventually(s.gateSays).Should(HavePrefix("Closed Remediated"))
}

func TestConfigurationWithAHookThatIsLeftIsNotClaimed(t *testing.T) {
	leave := quick + `,"webhooks":[{"hook":"nodes.hooks.example.com","action":"Leave"}]`
	s, g := newFlaggedShoot(t, withConfig(leave))
	s.enabled()
	s.Eventually(s.gateSays).Should(Equal("Closed NotGuarded"))
	s.Expect(s.guardStatus().Gate.Blocking[0]).To(And(HaveField("Hook", hookName("nodes")), HaveField("Message", ContainSubstring("Change that rule"))))
	s.Expect(s.condition()).To(HavePrefix("True WebhooksEnforced"), "it is free of findings")
	s.Expect(s.label("on-nodes")).To(BeEmpty())

	s.providerConfig = guardConfig(quick)
	s.enabled()
	s.Eventually(g.hibernationPossible).Should(HavePrefix("True"))
	s.providerConfig = guardConfig(leave)
	s.enabled()
	s.Eventually(g.hibernationPossible).Should(HavePrefix("False"))
	s.Eventually(s.claimed).Should(BeEmpty())
}

func TestClaimedHookThatMayNoLongerBeOpenedHoldsHibernationBack(t *testing.T) {
	s, _ := newFlaggedShoot(t, withRequestTimeout(5*time.Second)) // nothing else holds it back
	s.enabled()
	s.Eventually(s.gateSays).Should(Equal("Lifted"))
	s.providerConfig = guardConfig(quick + `,"webhooks":[{"hook":"nodes.hooks.example.com","action":"Leave"}]`)
	s.flowBegins(true)
	s.Expect(s.callFails()).To(And(ContainSubstring("held back"), ContainSubstring("nodes.hooks.example.com is not opened although")))
	s.providerConfig = guardConfig(quick)
	s.call()
	s.Expect(s.standing()).To(HaveKeyWithValue("on-nodes/nodes", "Ignore 3s"))
}

func TestOperatorLeavesTheConstraint(t *testing.T) {
	s, g := newFlaggedShoot(t, func(s *theShoot) { s.constraint = v1alpha1.ConstraintLeave })
	s.enabled()
	s.Eventually(s.gateSays).Should(Equal("Closed ConstraintLeft"))
	s.Expect(s.guardStatus().Gate.Blocking[0].Message).To(ContainSubstring("operator"))
	s.Expect(g.hibernationPossible()).To(HavePrefix("False"))
	s.Expect(s.touched()).To(BeEmpty())
}

func TestOwnerLeavesTheConstraint(t *testing.T) {
	s, g := newFlaggedShoot(t)
	s.enabled()
	s.Eventually(g.hibernationPossible).Should(HavePrefix("True"))
	for name, config := range map[string]string{"Leave": `,"hibernationConstraint":"Leave"`, "Report": `,"mode":"Report"`} {
		s.providerConfig = guardConfig(quick + config)
		s.enabled()
		s.Eventually(func() string { return s.label("on-nodes") }).Should(BeEmpty(), name)
		s.Expect(g.hibernationPossible()).To(HavePrefix("False"))
		s.providerConfig = guardConfig(quick)
		s.enabled()
		s.Eventually(g.hibernationPossible).Should(HavePrefix("True"))
	}
}

func TestLabelThatIsTakenOffTwiceIsNotSetAgain(t *testing.T) {
	s, _ := newFlaggedShoot(t)
	s.enabled()
	s.Eventually(s.claimed).Should(ConsistOf("on-nodes"))
	s.setLabel("on-nodes", "argocd", nil)
	s.aPassLater()
	s.Eventually(func() string { return s.label("on-nodes") }).Should(Equal(ourLabel))
	s.Eventually(s.claimed).Should(ConsistOf("on-nodes"))
	s.setLabel("on-nodes", "argocd", nil)
	s.aPassLater()
	s.Eventually(s.gateSays).Should(Equal("Closed ClaimRemoved"))
	s.restartController()
	s.aPassLater()
	s.Expect(s.label("on-nodes")).To(BeEmpty())
	s.Expect(s.gateSays()).To(Equal("Closed ClaimRemoved"))
}

func TestLabelOfTheUserStays(t *testing.T) {
	s, g := newFlaggedShoot(t, withConfig(quick+`,"webhooks":[{"hook":"harmless.hooks.example.com","action":"Leave"}]`))
	s.setLabel("on-nodes", "helm", v1alpha1.ClaimValue)
	s.enabled()
	s.Eventually(s.gateSays).Should(Equal("Open"))
	s.Expect(g.hibernationPossible()).To(HavePrefix("True"))
	s.Expect(s.claimed()).To(BeEmpty())
	s.providerConfig = guardConfig(quick + `,"webhooks":[{"hook":"nodes.hooks.example.com","action":"Leave"}]`)
	s.enabled()
	s.Eventually(s.gateSays).Should(Equal("Open HiddenNotGuarded"))
	s.Expect(s.guardStatus().Gate.Unguarded).To(BeEquivalentTo(1))
	s.flowBegins(false)
	s.disabled()
	s.Eventually(s.find).Should(BeNil())
	s.Expect(s.label("on-nodes")).To(Equal("gardener by [helm]"))
}

func TestConfigurationThatIsCreatedAnewIsClaimedAnew(t *testing.T) {
	s, _ := newFlaggedShoot(t)
	s.enabled()
	s.Eventually(s.claimed).Should(ConsistOf("on-nodes"))
	old := s.read("on-nodes")
	s.Expect(s.shoot().Delete(s.ctx, old)).To(Succeed())
	fresh := s.newValidating("on-nodes", hookOf{name: "nodes", policy: "Fail", timeout: 10, resource: "nodes"})
	s.create(fresh)
	s.aPassLater()
	s.Eventually(func() any { return s.state().Claims }).Should(And(HaveLen(1), ConsistOf(And(HaveField("UID", fresh.UID), HaveField("Pending", false)))))
	s.Expect(s.label("on-nodes")).To(Equal(ourLabel))
}

func TestClaimIsOnRecordBeforeTheLabelIsSet(t *testing.T) {
	s, _ := newFlaggedShoot(t)
	unrecorded := 0
	s.gate.asks(func(r request) {
		if isPatch(r) && strings.Contains(r.body, v1alpha1.ClaimLabel) && len(s.claimed()) == 0 {
			unrecorded++
		}
	})
	cut := s.gate.fails(1, breaks, func(r request) bool { return isPatch(r) && strings.Contains(r.body, v1alpha1.ClaimLabel) })
	s.enabled()
	s.Eventually(func() int { return s.gate.hits(cut) }).Should(Equal(1))
	s.Eventually(s.claimed).Should(ConsistOf("on-nodes"), "tried again soon")
	s.gate.asks(nil)
	s.Expect(unrecorded).To(BeZero())
	s.Expect(s.state().Claims).To(HaveEach(HaveField("Removed", 0)))
	s.Expect(s.label("on-nodes")).To(Equal(ourLabel))
}

func TestCrashAfterTheLabelWasSetLosesNoClaim(t *testing.T) {
	s, _ := newFlaggedShoot(t)
	s.enabled()
	s.Eventually(s.claimed).Should(ConsistOf("on-nodes"))
	s.controller.end()
	s.tamper(func(state map[string]any) {
		for _, c := range state["claims"].(map[string]any) {
			c.(map[string]any)["pending"] = true // as it stood just before the patch
		}
	})
	s.startController()
	s.Eventually(s.claimed).Should(ConsistOf("on-nodes"))
	s.flowBegins(false)
	s.disabled()
	s.Eventually(s.find).Should(BeNil())
	s.Expect(s.label("on-nodes")).To(BeEmpty())
}

func TestRefusedLabelIsToldAndTriedAgain(t *testing.T) {
	s, _ := newFlaggedShoot(t)
	s.gate.fails(always, answers(http.StatusForbidden, "Forbidden", "no right to label"), isPatch)
	s.enabled()
	s.Eventually(s.gateSays).Should(Equal("Closed ClaimFailed"))
	s.Expect(s.guardStatus().Gate.Blocking[0].Message).To(ContainSubstring("no right to label"))
	s.Expect(s.condition()).To(HavePrefix("True WebhooksEnforced"))
	s.gate.mend()
	s.Eventually(s.gateSays).Should(Equal("Lifted"), "with no event to tell")
}
