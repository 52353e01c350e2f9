// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// wrong is how the Shoot's API server fails.
var wrong = map[string]func(http.ResponseWriter, *http.Request){
	"unreachable": breaks,
	"no answer":   hangs,
	"401":         answers(401, metav1.StatusReasonUnauthorized, "Unauthorized"),
	"403":         answers(403, metav1.StatusReasonForbidden, "not yours"),
	"409":         answers(409, metav1.StatusReasonConflict, "changed meanwhile"),
	"422":         answers(422, metav1.StatusReasonInvalid, "not valid now"),
	"429":         answers(429, metav1.StatusReasonTooManyRequests, "too many"),
	"500":         answers(500, metav1.StatusReasonInternalError, "broken"),
}

// calls are the kinds of requests to the Shoot, as lists and as watches.
var calls = map[string]func(request) bool{
	"list of validating configurations": reads(validatingResource),
	"list of mutating configurations":   reads(mutatingResource),
	"list of nodes":                     reads("nodes"),
	"list of leases":                    reads("leases"),
	"list of pods":                      reads("pods"),
	"list of endpoint slices":           reads("endpointslices"),
	"get of a service":                  reads("services"),
	"patch of a configuration":          isPatch,
	"report":                            func(r request) bool { return r.resource == "configmaps" },
	"event":                             func(r request) bool { return r.resource == "events" },
}

func reads(resource string) func(request) bool {
	return func(r request) bool { return r.resource == resource && !r.writes() }
}

// worldReads are the calls that verdicts depend on.
var worldReads = []string{"list of nodes", "list of leases", "list of pods", "list of endpoint slices", "get of a service"}

// each runs a story for each way to fail of each call; without ways for all of them.
func each(t *testing.T, named []string, ways []string, story func(t *testing.T, call func(request) bool, way func(http.ResponseWriter, *http.Request))) {
	for _, call := range named {
		for name, way := range wrong {
			if len(ways) == 0 || slices.Contains(ways, name) {
				t.Run(call+": "+name, func(t *testing.T) { story(t, calls[call], way) })
			}
		}
	}
}

func TestHibernationIsHeldBackWhileTheShootCannotBeRead(t *testing.T) {
	t.Parallel()
	story := func(t *testing.T, call func(request) bool, way func(http.ResponseWriter, *http.Request)) {
		s := newShoot(t)
		s.gate.fails(always, way, call)
		s.flowBegins(true)
		s.Expect(s.callFails()).To(ContainSubstring("hibernation is held back"))
		s.Expect(s.writes()).To(BeEmpty())
		s.gate.mend()
		s.Eventually(s.succeeded).Should(BeTrue(), "the library tries again")
		s.Expect(s.standing()).To(Equal(open))
	}
	each(t, []string{"list of validating configurations"}, nil, story)
	each(t, []string{"list of mutating configurations"}, []string{"no answer", "403"}, story)
}

func TestHibernationIsHeldBackWhileConfigurationsCannotBePatched(t *testing.T) {
	t.Parallel()
	each(t, []string{"patch of a configuration"}, nil, func(t *testing.T, call func(request) bool, way func(http.ResponseWriter, *http.Request)) {
		s := newShoot(t)
		s.gate.fails(always, way, call)
		s.flowBegins(true)
		s.Expect(s.callFails()).To(And(ContainSubstring("hibernation is held back"), ContainSubstring("policies."+s.name)))
		s.Expect(s.recorded()).To(HaveLen(3), "their originals are on record all the same")
		s.Expect(s.standing()).To(Equal(own))
		s.gate.mend()
		s.Eventually(s.succeeded).Should(BeTrue(), "the library tries again")
		s.Expect(s.standing()).To(Equal(open))
	})
}

func TestConfigurationThatCannotBeReadAgainAfterAConflictIsNotTakenForGone(t *testing.T) {
	s := newShoot(t)
	s.gate.fails(always, wrong["409"], isPatch)
	s.gate.fails(always, wrong["500"], func(r request) bool { return r.verb == "get" && r.resource == validatingResource })
	s.flowBegins(true)
	s.Expect(s.callFails()).To(And(ContainSubstring("hibernation is held back"), ContainSubstring("policies."+s.name)))
}

func TestHibernationGoesOnWithoutVerdictsReportAndEvents(t *testing.T) {
	t.Parallel()
	each(t, append([]string{"report", "event"}, worldReads...), []string{"no answer", "403"},
		func(t *testing.T, call func(request) bool, way func(http.ResponseWriter, *http.Request)) {
			s := newShoot(t)
			fault := s.gate.fails(always, way, call)
			s.flowBegins(true)
			s.Expect(s.call()).To(BeNumerically("<", mayTake))
			s.Expect(s.standing()).To(Equal(open))
			s.Expect(s.gate.hits(fault)).NotTo(BeZero())
		})
}

func TestCallIsAnsweredInTimeHoweverManyRequestsHang(t *testing.T) {
	s := newShoot(t, withRequestTimeout(5*time.Second))
	for i := range 8 {
		name := fmt.Sprintf("backend-%d", i)
		s.service(name)
		s.validating(name, hookOf{name: "a", backend: name})
	}
	s.gate.fails(always, hangs, func(r request) bool {
		return !calls["list of validating configurations"](r) && !calls["list of mutating configurations"](r) && !isPatch(r)
	})
	s.flowBegins(true)
	s.Expect(s.call()).To(BeNumerically("<", mayTake))
	for name, values := range s.standing() {
		if name != "crds/foreign" {
			s.Expect(values).To(HavePrefix("Ignore"), name)
		}
	}
}

func TestWhatCannotBeReadIsNoVerdict(t *testing.T) {
	t.Parallel()
	story := func(t *testing.T, call func(request) bool, way func(http.ResponseWriter, *http.Request)) {
		s := newShoot(t)
		s.service("late")
		s.hibernates()
		s.gate.fails(always, way, call)
		s.wakesUp()
		s.expectNoVerdict()
	}
	each(t, []string{"list of nodes"}, nil, story)
	each(t, worldReads[1:], []string{"no answer", "403"}, story)
}

func TestWhatCanNoLongerBeReadIsNoVerdict(t *testing.T) {
	t.Parallel()
	each(t, worldReads, []string{"no answer", "403"}, func(t *testing.T, call func(request) bool, way func(http.ResponseWriter, *http.Request)) {
		s := newShoot(t)
		s.service("late")
		s.hibernates()
		s.wakesUp()
		s.Eventually(s.watches).Should(HaveLen(7), "the loop watches")
		s.gate.fails(always, way, call)
		s.gate.cut()
		s.expectNoVerdict()
	})
}

// watches are the kinds that are watched.
func (s *theShoot) watches() map[string]bool {
	out := map[string]bool{}
	for _, r := range s.gate.seen(func(r request) bool { return r.verb == "watch" && r.code == 200 }) {
		out[r.resource] = true
	}
	return out
}

// expectNoVerdict expects that the backends, which come back, count neither as ready nor as not ready until all can be read.
func (s *theShoot) expectNoVerdict() {
	s.t.Helper()
	s.nodesJoin()
	s.comesBack("late")
	s.aPassLater()
	s.validating("late", hookOf{name: "late", policy: "Fail", timeout: 10, backend: "late"})
	s.aPassLater()
	s.later(2 * time.Second) // the stabilization time
	s.aPassLater()
	s.Expect(s.standing()).To(Equal(with(open, "late/late", "Fail 10s")), "nothing is given back, and nothing more is opened")
	s.Expect(s.condition()).To(HavePrefix("Progressing WebhooksFailOpen"))
	s.gate.mend()
	s.Eventually(func() any { s.nudge(); return s.standing() }).WithPolling(200 * time.Millisecond).
		Should(Equal(with(own, "late/late", "Fail 10s")))
	s.Eventually(s.leftovers).Should(BeEmpty())
}

func TestAwakeningShootThatCannotBeReadIsReportedUnreachable(t *testing.T) {
	t.Parallel()
	each(t, []string{"list of validating configurations"}, nil, func(t *testing.T, call func(request) bool, way func(http.ResponseWriter, *http.Request)) {
		s := newShoot(t)
		s.hibernates()
		s.wakesUp()
		s.gate.fails(always, way, call)
		s.gate.cut()
		s.gate.forget()
		s.nodesJoin()
		s.Eventually(s.condition).Should(HavePrefix("Unknown ShootUnreachable: The Shoot's API server does not answer, 3 webhooks are on record"))
		s.Expect(s.writes()).To(BeEmpty())
		s.gate.mend()
		s.Eventually(s.standing).Should(Equal(own))
		s.Eventually(s.condition).Should(HavePrefix("True WebhooksEnforced"))
	})
}

func TestRestoreIsTriedUntilItSucceeds(t *testing.T) {
	t.Parallel()
	each(t, []string{"patch of a configuration"}, nil, func(t *testing.T, call func(request) bool, way func(http.ResponseWriter, *http.Request)) {
		s := newShoot(t)
		s.hibernates()
		s.wakesUp()
		fault := s.gate.fails(always, way, call)
		s.nodesJoin()
		s.Eventually(func() int { return s.gate.hits(fault) }).Should(BeNumerically(">=", 4))
		s.Expect(s.standing()).To(Equal(open))
		s.Expect(s.condition()).To(HavePrefix("Progressing WebhooksFailOpen"))
		s.gate.mend()
		s.Eventually(s.changed).Should(BeEmpty())
	})
}

func TestRestoreGoesOnWithoutReportAndEvents(t *testing.T) {
	t.Parallel()
	each(t, []string{"report", "event"}, []string{"no answer", "403"}, func(t *testing.T, call func(request) bool, way func(http.ResponseWriter, *http.Request)) {
		s := newShoot(t)
		s.gate.fails(always, way, call)
		s.hibernates()
		s.wakesUp()
		s.nodesJoin()
		s.Eventually(s.changed).Should(BeEmpty())
	})
}

func TestWakeUpCallFailsWhileTheShootIsUnreachableAndHealsByItself(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	s.scaleAPIServer(1) // it does not answer yet
	s.flowBegins(false)
	s.asked()
	s.Eventually(s.condition).Should(HavePrefix("Unknown ShootUnreachable"))
	s.gate.open()
	s.Eventually(s.succeeded).Should(BeTrue())
	s.Expect(s.standing()).To(Equal(open))
	s.nodesJoin()
	s.Eventually(s.changed).Should(BeEmpty())
}

func TestCredentialsRotatedDuringTheSleep(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	old := s.gate
	s.makeGate() // another port and certificate
	s.gardenersAccess()
	s.wakesUp()
	s.Expect(s.standing()).To(Equal(open))
	s.nodesJoin()
	s.Eventually(s.changed).Should(BeEmpty())
	s.Expect(old.openConnections()).To(BeZero())
}
