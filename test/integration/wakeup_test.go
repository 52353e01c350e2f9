// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

func TestExtensionEnabledWhileAsleepOpensBeforeNodesCome(t *testing.T) {
	s := newShootWithoutExtension(t)
	s.flowBegins(true)
	s.nodesGo()
	s.apiServerStops()
	s.flowEnds()
	s.flowBegins(true) // the edit that enables the extension
	s.call()
	s.flowEnds()
	s.wakesUp()
	s.Expect(s.standing()).To(Equal(open))
	s.nodesJoin()
	s.Eventually(s.changed).Should(BeEmpty())
}

func TestWakeUpThatCannotOpenIsTold(t *testing.T) {
	s := newShootWithoutExtension(t)
	s.flowBegins(true)
	s.nodesGo()
	s.apiServerStops()
	s.flowEnds()
	s.flowBegins(true)
	s.call()
	s.flowEnds()
	s.flowBegins(false)
	s.scaleAPIServer(1) // it does not answer yet
	s.asked()
	s.Eventually(s.condition).Should(HavePrefix("Unknown ShootUnreachable"))
	s.gate.fails(always, wrong["403"], isPatch)
	s.gate.open()
	s.Eventually(s.condition).Should(And(HavePrefix("Progressing MayNotWake"), ContainSubstring("not yours")))
	s.gate.mend()
	s.Eventually(s.standing).Should(Equal(open), "it is tried again and again")
	s.Eventually(s.condition).Should(HavePrefix("Progressing WebhooksFailOpen"))
	s.nodesJoin()
	s.Eventually(s.changed).Should(BeEmpty())
}

func TestWakeUpOpensWhatWasClosedUnseen(t *testing.T) {
	s := newShoot(t)
	s.flowBegins(true)
	s.call()
	s.controller.end()
	s.nodesGo()
	s.set("policies", 0, "Fail", 10)
	s.apiServerStops()
	s.flowEnds()
	s.startController()
	s.wakesUp()
	s.Expect(s.standing()).To(Equal(open))
	s.nodesJoin()
	s.Eventually(s.standing).Should(Equal(own))
	s.Eventually(s.leftovers).Should(BeEmpty())
}

func TestWakeUpOpensOnlyWhatDoesNotAnswer(t *testing.T) {
	s := newShootWithoutExtension(t)
	s.service("dead")
	s.validating("dead", hookOf{name: "dead", policy: "Fail", timeout: 10, backend: "dead"})
	s.flowBegins(true)
	s.apiServerStops()
	s.flowEnds()
	s.wakesUp() // with all nodes there already
	s.Expect(s.standing()).To(Equal(with(own, "dead/dead", "Ignore 3s")))
}

func TestNothingIsGivenBackWhileTheBackendIsAway(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	s.wakesUp()
	s.nodeJoins()
	s.flowEnds()
	s.aPassLater()
	s.aPassLater()
	s.Expect(s.standing()).To(Equal(open))
	s.Expect(s.condition()).To(HavePrefix("Progressing WebhooksFailOpen: After the wake-up 3 webhooks are not given back yet"))
	s.comesBack("backend")
	s.Eventually(s.standing).Should(Equal(own))
}

func TestNothingIsGivenBackWhileTheTunnelIsDown(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	s.wakesUp()
	tunnel := s.tunnel()
	s.nodesJoin()
	s.aPassLater()
	s.aPassLater()
	s.Expect(s.standing()).To(Equal(open))
	s.Expect(s.condition()).To(ContainSubstring("vpn-shoot"))
	s.setReady(tunnel, corev1.ConditionTrue)
	s.Eventually(s.standing).Should(Equal(own))
}

func TestNothingIsGivenBackWithoutAFreshLease(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	s.wakesUp()
	s.nodesJoin()
	s.renewed(time.Now().Add(-41 * time.Second))
	s.aPassLater()
	s.later(2 * time.Second)
	s.aPassLater()
	s.Expect(s.standing()).To(Equal(open))
	s.renewed(time.Now().Add(time.Hour))
	s.nudge()
	s.Eventually(s.standing).Should(Equal(own))
}

func TestBackendThatComesAndGoesIsNotStable(t *testing.T) {
	s := newShoot(t, withConfig(`,"stabilization":"3s"`))
	s.hibernates()
	s.wakesUp()
	s.nodesJoin()
	s.aPassLater()
	s.goes("backend")
	s.aPassLater()
	s.comesBack("backend")
	s.aPassLater()
	s.Expect(s.standing()).To(Equal(open))
	s.Eventually(s.standing).Should(Equal(own))
}

func TestHookIsOpenedAgainAtMostThreeTimesAfterItWasGivenBack(t *testing.T) {
	s := newShoot(t, withConfig(`,"stabilization":"5s"`)) // the watch after a restore is as long; a slow machine needs it
	s.hibernates()
	s.wakesUp()
	s.nodesJoin()
	for range 3 {
		s.Eventually(s.standing).Should(Equal(own))
		s.goes("backend")
		s.Eventually(s.standing).Should(Equal(open))
		s.comesBack("backend")
	}
	s.Eventually(s.standing).Should(Equal(own))
	s.goes("backend")
	s.Eventually(s.condition).Should(HavePrefix("Progressing RestoreFailed: Given back three times in vain"))
	s.Expect(s.standing()).To(Equal(own))
	s.Eventually(s.leftovers).Should(BeEmpty())
}

func TestHibernationCancelledHalfWay(t *testing.T) {
	s := newShoot(t)
	s.flowBegins(true)
	s.call()
	s.flowFails()
	s.flowBegins(false)
	s.call()
	s.flowEnds()
	s.Eventually(s.changed).Should(BeEmpty())
	s.Eventually(s.condition).Should(HavePrefix("True WebhooksEnforced"))
}

func TestHibernationCancelledAfterTheAPIServerWasDown(t *testing.T) {
	s := newShoot(t)
	s.flowBegins(true)
	s.call()
	s.nodesGo()
	s.apiServerStops()
	s.flowFails() // the Cluster never says isHibernated
	s.wakesUp()
	s.Expect(s.standing()).To(Equal(open))
	s.nodesJoin()
	s.Eventually(s.changed).Should(BeEmpty())
}

func TestHookRenamedInTheWindow(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	s.wakesUp()
	s.edit("policies", func(o *admissionregistrationv1.ValidatingWebhookConfiguration) {
		o.Webhooks[0] = s.newHook(hookOf{name: "renamed", policy: "Fail", timeout: 10})
	})
	renamed := with(open, "policies/renamed", "Ignore 3s")
	delete(renamed, "policies/strict")
	s.Eventually(s.standing).Should(Equal(renamed))
	s.nodesJoin()
	after := with(own, "policies/renamed", "Fail 10s")
	delete(after, "policies/strict")
	s.Eventually(s.standing).Should(Equal(after))
	s.Eventually(s.leftovers).Should(BeEmpty())
}

func TestHookRemovedInTheWindow(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	s.wakesUp()
	s.edit("policies", func(o *admissionregistrationv1.ValidatingWebhookConfiguration) { o.Webhooks = o.Webhooks[1:] })
	s.nodesJoin()
	after := with(own, "", "")
	delete(after, "")
	delete(after, "policies/strict")
	s.Eventually(s.standing).Should(Equal(after))
	s.Eventually(s.leftovers).Should(BeEmpty())
	s.Eventually(s.condition).Should(HavePrefix("True WebhooksEnforced"))
	s.Expect(s.recorded()).To(HaveKey("policies/strict"), "it may come back")
	s.Eventually(func() any { s.later(20 * time.Second); return s.recorded() }).WithPolling(300 * time.Millisecond).Should(BeEmpty())
}

func TestHookReplacedWhileItsBackendServesLeavesNothing(t *testing.T) {
	s := newShoot(t, withConfig(`,"stabilization":"4s"`))
	s.hibernates()
	s.wakesUp()
	s.nodesJoin()
	s.aPassLater()
	s.edit("policies", func(o *admissionregistrationv1.ValidatingWebhookConfiguration) {
		o.Webhooks = []admissionregistrationv1.ValidatingWebhook{s.newHook(hookOf{name: "renamed", policy: "Fail", timeout: 10})}
	})
	s.Eventually(s.standing).Should(And(HaveKeyWithValue("defaults/mutate", "Fail 15s"), HaveKeyWithValue("policies/renamed", "Fail 10s")))
	s.Eventually(s.leftovers).Should(BeEmpty())
}

func TestConfigurationEmptiedInTheWindowLeavesNothing(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	s.wakesUp()
	s.edit("policies", func(o *admissionregistrationv1.ValidatingWebhookConfiguration) { o.Webhooks = nil })
	s.nodesJoin()
	s.Eventually(s.standing).Should(HaveKeyWithValue("defaults/mutate", "Fail 15s"))
	s.Eventually(s.leftovers).Should(BeEmpty())
}

func TestConfigurationMadeAnewInTheWindow(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	s.wakesUp()
	s.Expect(s.shoot().Delete(s.ctx, s.read("policies"))).To(Succeed())
	s.validating("policies", hookOf{name: "strict", policy: "Fail", timeout: 25}, hookOf{name: "slow", policy: "Ignore", timeout: 20})
	s.Eventually(s.standing).Should(Equal(open))
	s.nodesJoin()
	s.Eventually(s.standing).Should(Equal(with(own, "policies/strict", "Fail 25s")))
	s.Eventually(s.leftovers).Should(BeEmpty())
	s.Eventually(s.recorded).Should(BeEmpty())
}

func TestConfigurationOptedOutInTheWindowIsGivenBackAllTheSame(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	s.wakesUp()
	s.edit("policies", func(o *admissionregistrationv1.ValidatingWebhookConfiguration) {
		o.Labels[v1alpha1.LeaveLabel] = "true"
	})
	s.nodesJoin()
	s.Eventually(s.standing).Should(Equal(own))
	s.Eventually(s.leftovers).Should(BeEmpty())
}
