//go:build e2e

// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

func TestRecordIsLostDuringTheSleep(t *testing.T) {
	s := newStage(t, bench.Options{}, shortStabilization)
	w := s.installInHouse(admissionregistrationv1.OperationAll)

	// The former owners of the two fields were on record only: nobody owns them until their owner applies them again.
	s.storyBut(owners, "the annotation knows the originals", func() {
		s.hibernate()
		s.expectOpenAsleep(w.pods.Name, w.nodes.Name)
		s.forgetRecord()
		s.wakeUp()
	})
	s.storyBut(owners, "nothing knows the originals: told, and left to a person", func() {
		s.hibernate()
		s.controller.Stop()
		s.forgetRecord()
		s.stopped(bench.StepWaitKubeAPIServer, s.gardenlet.WakeUp)
		for _, w := range []*bench.Webhook{w.pods, w.nodes} {
			s.patch(w, `{"metadata":{"annotations":null}}`)
		}
		s.Expect(s.controller.Start(s.ctx)).To(Succeed())
		s.wakeUp()
		s.Eventually(s.condition).WithTimeout(s.patience).Should(Equal("False " + v1alpha1.ReasonOriginalUnknown))
		s.Consistently(func() string { return s.policy(w.pods) + s.policy(w.nodes) }).
			WithTimeout(10 * time.Second).WithPolling(time.Second).Should(Equal("IgnoreIgnore"))

		s.patch(w.pods, `{"webhooks":[{"name":"`+w.pods.HookName+`","failurePolicy":"Fail","timeoutSeconds":7}]}`)
		s.patch(w.nodes, `{"webhooks":[{"name":"`+w.nodes.HookName+`","failurePolicy":"Fail","timeoutSeconds":10}]}`)
		s.reconcile() // instead of five minutes, after which the extension looks by itself
	})
}
