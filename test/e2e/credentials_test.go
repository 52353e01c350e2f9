//go:build e2e

// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/backend"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

func TestWhatHappensDuringTheSleep(t *testing.T) {
	s := newStage(t, bench.Options{}, shortStabilization)
	w := s.installInHouse(admissionregistrationv1.OperationAll)

	s.story("the controller starts again", func() {
		s.hibernate()
		s.controller.Stop()
		s.Expect(s.controller.Start(s.ctx)).To(Succeed())
		s.wakeUp()
	})
	s.story("the controller is away until nodes would come", func() {
		s.hibernate()
		s.controller.Kill()
		s.stopped(bench.StepConnectToShoot, s.gardenlet.WakeUp)
		s.Expect(s.controller.Start(s.ctx)).To(Succeed())
		s.wakeUp()
	})
	s.story("tokens expire", func() {
		s.hibernate()
		s.Expect(s.gardenlet.ExpireTokens(s.ctx)).To(Succeed())
		s.wakeUp()
	})
	s.story("authority and kubeconfigs are rotated", func() {
		s.hibernate()
		s.Expect(s.gardenlet.RotateCredentials(s.ctx)).To(Succeed())
		s.wakeUp()
	})
	s.story("the tunnel breaks: nothing is given back until it works", func() {
		s.hibernate()
		s.bench.Tunnel.Cut()
		awake := s.inBackground(s.gardenlet.WakeUp)
		s.Eventually(func() []string { return s.reasons(w.pods.Name) }).WithTimeout(time.Minute).
			Should(ContainElement(string(backend.TunnelDown)))
		s.Eventually(s.readyNodes).WithTimeout(time.Minute).Should(Equal(1))
		s.Consistently(func() string { return s.policy(w.pods) + s.policy(w.nodes) }).
			WithTimeout(15 * time.Second).WithPolling(500 * time.Millisecond).Should(Equal("IgnoreIgnore"))
		s.Expect(s.reasons(w.pods.Name)).To(ContainElement(string(backend.TunnelDown)))
		s.bench.Tunnel.Mend()
		awake()
	})
}
