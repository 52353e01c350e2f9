// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestHibernationOpensAllInScopeBeforeItSucceeds(t *testing.T) {
	s := newShoot(t)
	early := make(chan string, 10)
	s.gate.asks(func(r request) {
		if isPatch(r) && len(s.recorded()) != 3 {
			early <- r.name
		}
	})
	s.flowBegins(true)
	s.call()
	s.Expect(s.standing()).To(Equal(open))
	s.Expect(early).To(BeEmpty(), "configurations that were opened before all originals were on record")
	s.gate.asks(nil)
	s.Expect(s.recorded()).To(Equal(map[string]string{"policies/strict": "Fail 10s", "policies/slow": "Ignore 20s", "defaults/mutate": "Fail 15s"}))
	s.Expect(s.condition()).To(HavePrefix("Progressing WebhooksOpening: The Shoot goes to sleep, 3 webhooks are fail-open"))
}

func TestHibernationReadsNothingElseBeforeTheLastOpen(t *testing.T) {
	s := newShoot(t)
	s.flowBegins(true)
	s.call()
	var before []string
	for _, r := range s.gate.seen(func(request) bool { return true }) {
		before = append(before, r.verb+" "+r.resource)
	}
	patch := func(r string) bool { return r == "patch "+validatingResource || r == "patch "+mutatingResource }
	list := func(r string) bool { return r == "list "+validatingResource || r == "list "+mutatingResource }
	first, last := slices.IndexFunc(before, patch), len(before)
	for last > 0 && !patch(before[last-1]) {
		last--
	}
	s.Expect(first).To(BeNumerically(">", 1))
	begin := first // the two lists before it; what was before them is the loop's
	for lists := 0; begin > 0 && lists < 2; begin-- {
		if list(before[begin-1]) {
			lists++
		}
	}
	s.Expect(before[begin:last]).To(ConsistOf("list "+validatingResource, "list "+mutatingResource, asksForSeed,
		"patch "+validatingResource, "patch "+mutatingResource))
}

func TestWakeUpGivesEachHookItsOwnValuesBack(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	s.wakesUp()
	s.Expect(s.standing()).To(Equal(open))
	ready := time.Now()
	s.nodesJoin()
	s.Eventually(s.standing).Should(Equal(own))
	s.Expect(time.Since(ready)).To(BeNumerically(">=", time.Second), "the stabilization time")
	s.Eventually(s.changed).Should(BeEmpty())
	s.Eventually(s.condition).Should(HavePrefix("True WebhooksEnforced"))
	s.Eventually(func() any { return s.state().Cycle }).Should(BeNil())
	s.Expect(s.state().Hooks).To(BeEmpty())
	s.Expect(s.guardStatus().Restored).To(BeEquivalentTo(3))
}

func TestTwoCyclesInARow(t *testing.T) {
	s := newShoot(t)
	for range 2 {
		s.hibernates()
		s.Eventually(s.condition).Should(HavePrefix("True ShootAsleep: The Shoot sleeps, 3 webhooks are fail-open"))
		s.wakesUp()
		s.Expect(s.standing()).To(Equal(open))
		s.nodesJoin()
		s.Eventually(s.changed).Should(BeEmpty())
	}
}

func TestSleepingShootIsNotAsked(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	s.Eventually(s.condition).Should(HavePrefix("True ShootAsleep"))
	s.Eventually(s.gate.openConnections).Should(BeZero())
	knocks := s.gate.knocked()
	s.flowBegins(true)
	s.Expect(s.call()).To(BeNumerically("<", 2*time.Second))
	s.flowEnds()
	s.restartController()
	s.Consistently(s.gate.knocked).Should(Equal(knocks))
	s.Expect(s.recorded()).To(HaveLen(3))
}

func TestHooksAreHeldWhileTheirBackendsVanish(t *testing.T) {
	s := newShoot(t)
	s.flowBegins(true)
	s.call()
	s.set("policies", 0, "Fail", 10) // its owner, on its last legs
	s.nodesGo()
	s.Eventually(s.standing).Should(Equal(open))
}

func TestHookThatAppearsDuringTheDrainIsOpenedToo(t *testing.T) {
	s := newShoot(t)
	s.service("late")
	s.flowBegins(true)
	s.call()
	s.validating("late", hookOf{name: "late", policy: "Fail", timeout: 30, backend: "late"})
	s.Eventually(s.standing).Should(Equal(with(open, "late/late", "Ignore 3s")))
	s.Expect(s.recorded()).To(HaveKeyWithValue("late/late", "Fail 30s"))
}

func TestShootOwnerIsToldInsideTheCluster(t *testing.T) {
	s := newShoot(t)
	told := func(resource, what string) func() any {
		return func() any {
			return s.gate.seen(func(r request) bool {
				return r.writes() && r.resource == resource && strings.Contains(r.body, what) && strings.Contains(r.body, "policies."+s.name)
			})
		}
	}
	s.flowBegins(true)
	s.call()
	s.Eventually(told("configmaps", "state: Open")).ShouldNot(BeEmpty())
	s.Eventually(told("events", "SetFailOpen")).ShouldNot(BeEmpty())
	s.nodesGo()
	s.apiServerStops()
	s.flowEnds()
	s.wakesUp()
	s.nodesJoin()
	s.Eventually(told("events", "PolicyRestored")).ShouldNot(BeEmpty())
	s.Eventually(told("configmaps", "state: Done")).ShouldNot(BeEmpty())
	s.Eventually(s.events).Should(ContainElements("SetFailOpen", "PolicyRestored"))
}

func TestNothingIsOpenedInReportMode(t *testing.T) {
	s := newShoot(t, withConfig(`,"mode":"Report"`+quick))
	s.hibernates()
	s.wakesUp()
	s.nodesJoin()
	s.Eventually(func() any { return s.state().Cycle }).Should(BeNil())
	s.Expect(s.writes()).To(BeEmpty())
}
