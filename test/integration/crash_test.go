// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// crashesAt ends the controllers at the first request that matches, which never reaches the API server, and returns when they
// have ended.
func (s *theShoot) crashesAt(match func(request) bool, happens func()) {
	s.t.Helper()
	s.gate.fails(always, breaks, match)
	crashing := s.controller
	s.gate.asks(func(r request) {
		if match(r) {
			crashing.stop()
		}
	})
	happens()
	s.Eventually(crashing.stopped).Should(BeClosed())
	s.gate.asks(nil)
	s.gate.mend()
}

func TestCrashBetweenRecordAndOpen(t *testing.T) {
	s := newShoot(t)
	s.flowBegins(true)
	s.crashesAt(isPatch, s.asked)
	s.Expect(s.recorded()).To(HaveLen(3))
	s.Expect(s.standing()).To(Equal(own))
	s.startController()
	s.call()
	s.Expect(s.standing()).To(Equal(open))
	s.nodesGo()
	s.apiServerStops()
	s.flowEnds()
	s.wakesUp()
	s.nodesJoin()
	s.Eventually(s.changed).Should(BeEmpty())
}

func TestCrashBetweenRestoreAndHandBack(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	s.wakesUp()
	handsBack := func(r request) bool { return isPatch(r) && strings.Contains(r.body, "managedFields") }
	s.crashesAt(handsBack, s.nodesJoin)
	s.Expect(s.standing()).To(HaveKeyWithValue("policies/strict", "Fail 10s"))
	s.Expect(s.leftovers()).NotTo(BeEmpty())
	s.startController()
	s.Eventually(s.changed).Should(BeEmpty())
}

func TestCrashWhileWaiting(t *testing.T) {
	s := newShoot(t)
	s.flowBegins(true)
	s.call()
	s.restartController()
	s.nodesGo()
	s.apiServerStops()
	s.flowEnds()
	s.restartController()
	s.wakesUp()
	s.restartController()
	s.nodeJoins()
	s.flowEnds()
	s.restartController()
	s.comesBack("backend")
	s.Eventually(s.changed).Should(BeEmpty())
	s.Eventually(s.condition).Should(HavePrefix("True WebhooksEnforced"))
}
