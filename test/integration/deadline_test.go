// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
)

func TestHibernationThatDoesNotEndIsGivenUpAtItsDeadline(t *testing.T) {
	s := newShoot(t)
	s.flowBegins(true)
	s.call()
	s.flowFails()
	s.later(59 * time.Minute)
	s.aPassLater()
	s.Expect(s.standing()).To(Equal(open))
	s.later(time.Minute)
	s.Eventually(s.standing).Should(Equal(own))
	s.Eventually(s.changed).Should(BeEmpty())
}

func TestHibernationIsNotGivenUpWhileAnOperationRuns(t *testing.T) {
	s := newShoot(t)
	s.flowBegins(true)
	s.call()
	s.clock.ahead.Store(int64(61 * time.Minute))
	s.asksAt(s.clock.Now().Add(-19 * time.Minute))
	s.aPassLater()
	s.aPassLater()
	s.Expect(s.standing()).To(Equal(open))
	s.later(2 * time.Minute)
	s.Eventually(s.standing).Should(Equal(own))
}

func TestHibernationIsNotGivenUpWithoutABackend(t *testing.T) {
	s := newShoot(t)
	s.flowBegins(true)
	s.call()
	s.nodesGo()
	s.flowFails()
	s.later(2 * time.Hour)
	s.aPassLater()
	s.aPassLater()
	s.Expect(s.standing()).To(Equal(open))
}

// asksAt puts gardenlet's word at a time of the movable clock, without an operation.
func (s *theShoot) asksAt(at time.Time) {
	ex := s.lookup()
	patch := client.MergeFrom(ex.DeepCopy())
	ex.Annotations[v1beta1constants.GardenerTimestamp] = at.UTC().Format(time.RFC3339Nano)
	s.Expect(s.seed().Patch(s.ctx, ex, patch)).To(Succeed())
}

// wakesUpWithADeadHook plays a wake-up in which one backend does not come back, up to one minute after the first ready node.
func wakesUpWithADeadHook(t *testing.T, config string, brokenBefore bool) *theShoot {
	s := newShoot(t, withConfig(quick+config))
	s.service("dead")
	if !brokenBefore {
		s.comesBack("dead")
	}
	s.validating("dead", hookOf{name: "dead", policy: "Fail", timeout: 10, backend: "dead"})
	s.before = s.snapshot()
	s.hibernates()
	s.wakesUp()
	s.nodesJoin()
	s.Eventually(s.standing).Should(Equal(with(own, "dead/dead", "Ignore 3s")))
	s.Eventually(func() any { return s.state().Cycle.FirstReadyNode }).ShouldNot(BeNil())
	s.later(50 * time.Second)
	s.aPassLater()
	s.Expect(s.standing()).To(Equal(with(own, "dead/dead", "Ignore 3s")), "before the deadline")
	s.later(20 * time.Second)
	return s
}

const oneMinute = `,"wakingUp":{"deadline":"1m"}`

func TestHookIsKeptOpenPastTheDeadlineUntilItsBackendAnswers(t *testing.T) {
	s := wakesUpWithADeadHook(t, oneMinute, false)
	s.Eventually(s.condition).Should(And(HavePrefix("False WebhooksStillFailOpen"), ContainSubstring("dead.hooks.example.com")))
	s.Expect(s.standing()).To(Equal(with(own, "dead/dead", "Ignore 3s")))
	s.Eventually(s.gate.openConnections).Should(BeZero(), "the care pass looks now and then")
	s.comesBack("dead")
	s.nudge() // instead of five minutes
	s.Eventually(s.standing).Should(Equal(with(own, "dead/dead", "Fail 10s")))
	s.Eventually(s.changed).Should(BeEmpty())
	s.Eventually(s.condition).Should(HavePrefix("True WebhooksEnforced"))
}

func TestHookIsRestoredByForceAtTheDeadlineIfTheConfigSaysSo(t *testing.T) {
	s := wakesUpWithADeadHook(t, `,"wakingUp":{"deadline":"1m","afterDeadline":"Restore"}`, false)
	s.Eventually(s.standing).Should(Equal(with(own, "dead/dead", "Fail 10s")))
	s.Eventually(s.changed).Should(BeEmpty())
}

func TestHookThatWasBrokenBeforeTheSleepIsRestoredAtTheDeadline(t *testing.T) {
	s := wakesUpWithADeadHook(t, oneMinute, true)
	s.Eventually(s.standing).Should(Equal(with(own, "dead/dead", "Fail 10s")))
	s.Eventually(s.changed).Should(BeEmpty())
}

func TestHookThatWasBrokenBeforeTheSleepIsKeptOpenAsLongAsTheFlowRuns(t *testing.T) {
	s := newShoot(t, withConfig(quick+oneMinute))
	s.service("dead")
	s.validating("dead", hookOf{name: "dead", policy: "Fail", timeout: 10, backend: "dead"})
	s.hibernates()
	s.wakesUp()
	s.nodeJoins()
	s.Eventually(func() any { return s.state().Cycle.FirstReadyNode }).ShouldNot(BeNil())
	s.later(2 * time.Minute)
	s.Eventually(s.condition).Should(HavePrefix("False WebhooksStillFailOpen"))
	s.Expect(s.standing()).To(HaveKeyWithValue("dead/dead", "Ignore 3s"))
	s.flowEnds()
	s.Eventually(s.standing).Should(HaveKeyWithValue("dead/dead", "Fail 10s"))
}

func TestHookThatLostItsBackendInTheDrainWasNotBrokenBeforeTheSleep(t *testing.T) {
	s := newShoot(t)
	s.flowBegins(true)
	s.call()
	s.goes("backend")
	s.validating("late", hookOf{name: "late", policy: "Fail", timeout: 10})
	s.Eventually(s.standing).Should(HaveKeyWithValue("late/late", "Ignore 3s"))
	s.flowFails()
	s.flowBegins(true)
	s.call()
	for key, rec := range s.state().Hooks {
		s.Expect(rec.Verdict).NotTo(Equal("NotReady"), key)
	}
}

// stored makes a validating configuration past the API server: such as it would not accept.
func (s *theShoot) stored(name string, hooks ...hookOf) {
	o := s.newValidating(name, hooks...)
	for i, h := range hooks {
		o.Webhooks[i].Name = h.name
	}
	s.storeObject(o)
}

func TestHibernationIsHeldBackForAHookThatCannotBeOpened(t *testing.T) {
	s := newShoot(t)
	s.stored("broken", hookOf{name: "in/valid~name", policy: "Fail", timeout: 10})
	s.flowBegins(true)
	for range 3 {
		s.Expect(s.callFails()).To(And(ContainSubstring("hibernation is held back"), ContainSubstring("broken."+s.name+"/in/valid~name"),
			ContainSubstring("domain"), Not(ContainSubstring("policies"))))
		s.Expect(s.standing()).To(Equal(with(open, "broken/in/valid~name", "Fail 10s")), "the rest is open")
	}
	s.Expect(s.callFails()).To(ContainSubstring("hibernation is held back"), "a fourth attempt within five minutes")
	s.clock.ahead.Store(int64(5*time.Minute + time.Second))
	s.call()
	s.Expect(s.condition()).To(And(HavePrefix("Progressing MayNotWake"), ContainSubstring("in/valid~name")))
}

func TestTroubleLaterInAHibernationIsHeldBackAnew(t *testing.T) {
	s := newShoot(t)
	s.flowBegins(true)
	s.gate.fails(always, wrong["403"], isPatch)
	s.Expect(s.callFails()).To(ContainSubstring("hibernation is held back"))
	s.gate.mend()
	s.Eventually(s.succeeded).Should(BeTrue())
	s.flowFails()
	s.stored("broken", hookOf{name: "in/valid~name", policy: "Fail", timeout: 10})
	s.flowBegins(true)
	s.clock.ahead.Store(int64(16 * time.Minute))
	s.asksNow()
	s.Eventually(s.lastError).Should(ContainSubstring("hibernation is held back"))
}

// lastError is what the extension answered last if it was an error.
func (s *theShoot) lastError() string {
	if e := s.lookup().Status.LastError; e != nil {
		return e.Description
	}
	return ""
}

func TestHibernationIsHeldBackForAtMostFifteenMinutes(t *testing.T) {
	s := newShoot(t)
	s.stored("o~d:&?#+ ", hookOf{name: `a/b~c"d`, policy: "Fail", timeout: 10}) // names that have to be escaped
	s.flowBegins(true)
	s.Expect(s.callFails()).To(ContainSubstring("a/b~c"))
	s.clock.ahead.Store(int64(15 * time.Minute))
	s.asksNow()
	s.Eventually(s.succeeded).Should(BeTrue())
	s.Eventually(s.condition).Should(HavePrefix("Progressing MayNotWake"))
}

// asksNow is a call by the movable clock.
func (s *theShoot) asksNow() {
	s.notTooSoon()
	s.askedAt = time.Now()
	ex := s.lookup()
	patch := client.MergeFrom(ex.DeepCopy())
	ex.Annotations[v1beta1constants.GardenerOperation] = v1beta1constants.GardenerOperationReconcile
	ex.Annotations[v1beta1constants.GardenerTimestamp] = s.clock.Now().UTC().Format(time.RFC3339Nano)
	s.Expect(s.seed().Patch(s.ctx, ex, patch)).To(Succeed())
}
