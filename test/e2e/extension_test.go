//go:build e2e

// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

func TestExtensionIsEnabledAndDisabled(t *testing.T) {
	s := newStage(t, bench.Options{}, shortStabilization)
	// What exists may be changed and deleted without the webhooks, so that the Shoot falls asleep without the extension, too.
	w := s.installInHouse(admissionregistrationv1.Create)
	extensions := s.gardenlet.Shoot().Spec.Extensions
	enable := func() {
		s.gardenlet.Edit(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Extensions = extensions })
	}
	disable := func() { s.gardenlet.Edit(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Extensions = nil }) }
	expectReleased := func() {
		s.t.Helper()
		s.Eventually(s.extension).WithTimeout(s.patience).Should(BeNil())
	}

	s.story("enabled while asleep", func() {
		disable()
		s.reconcile()
		expectReleased()
		s.hibernate()
		s.Expect([]string{s.policy(w.pods), s.policy(w.nodes)}).To(Equal([]string{"Fail", "Fail"}))
		enable()
		s.reconcile()
		s.wakeUp()
	})
	s.story("enabled in the edit that wakes up", func() {
		disable()
		s.reconcile()
		expectReleased()
		s.hibernate()
		enable()
		s.wakeUp()
	})
	s.story("disabled while hooks are open", func() {
		s.stopped(bench.StepWaitHibernatedExtension, s.gardenlet.Hibernate)
		s.Expect(s.policy(w.pods)).To(Equal("Ignore"))
		disable()
		s.wakeUp()
		expectReleased()
		s.Expect(s.policy(w.pods)).To(Equal("Fail"), "released before all was given back")
		enable()
		s.reconcile()
	})
	s.story("disabled while asleep", func() {
		s.hibernate()
		disable()
		s.reconcile()
		s.Expect(s.extension().DeletionTimestamp).NotTo(BeNil())
		s.expectOpenAsleep(w.pods.Name, w.nodes.Name)
		s.wakeUp()
		expectReleased()
		s.Expect([]string{s.policy(w.pods), s.policy(w.nodes)}).To(Equal([]string{"Fail", "Fail"}), "released before all was given back")
		enable()
		s.reconcile()
	})
	s.story("disabled in the edit that hibernates", func() {
		s.gardenlet.Edit(func(shoot *gardencorev1beta1.Shoot) {
			shoot.Spec.Extensions = nil
			shoot.Spec.Hibernation.Enabled = ptr.To(true)
		})
		s.hibernate()
		s.expectOpenAsleep(w.pods.Name, w.nodes.Name)
		s.wakeUp()
		expectReleased()
		enable()
		s.reconcile()
	})
	s.story("enabled again while held", func() {
		s.hibernate()
		disable()
		s.reconcile()
		held := s.extension().UID
		enable()
		s.reconcile()
		s.Expect(s.extension().UID).To(Equal(held))
		s.wakeUp()
		released := func() bool { e := s.extension(); return e == nil || e.UID != held }
		s.Eventually(released).WithTimeout(s.patience).Should(BeTrue())
		s.reconcile() // as gardenlet does every hour, and in between for many reasons
		s.Expect(s.extension().DeletionTimestamp).To(BeNil())
	})
}
