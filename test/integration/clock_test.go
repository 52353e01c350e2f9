// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestReplicaWhoseClockWasAheadKeepsNothingOpen(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	s.flowBegins(false)
	s.apiServerStarts()
	s.clock.ahead.Store(int64(time.Hour))
	s.asksNow()
	s.Eventually(s.succeeded).Should(BeTrue())
	s.Expect(s.state().Cycle.Begun.Time).To(BeTemporally(">", time.Now().Add(50*time.Minute)))
	s.controller.end()
	s.clock.ahead.Store(0)
	s.startController()
	s.nodesJoin()
	s.Eventually(s.changed).Should(BeEmpty())
}

func TestHibernationIsHeardThoughTheClockIsBehindGardenlets(t *testing.T) {
	s := newShoot(t)
	s.clock.ahead.Store(-int64(5 * time.Minute))
	s.flowBegins(true)
	s.call()
	s.Expect(s.standing()).To(Equal(open))
}
