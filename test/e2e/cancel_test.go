//go:build e2e

// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

func TestHibernationIsCancelled(t *testing.T) {
	s := newStage(t, bench.Options{}, shortStabilization)
	w := s.installInHouse(admissionregistrationv1.OperationAll)

	s.story("before a machine goes", func() {
		s.stopped(bench.StepWaitHibernatedExtension, s.gardenlet.Hibernate)
		s.Expect(s.policy(w.pods)).To(Equal("Ignore"))
		s.wakeUp()
	})
	s.story("while the machines go", func() {
		s.stopped(bench.StepDeployWorkers, s.gardenlet.Hibernate)
		s.Expect(s.policy(w.pods)).To(Equal("Ignore"))
		s.wakeUp()
	})
	s.story("after the API server went", func() {
		s.stopped(bench.StepHibernateControlPlane, s.gardenlet.Hibernate)
		s.Expect(s.bench.Shoot.Running()).To(BeFalse())
		s.Expect(s.gardenlet.Shoot().Status.IsHibernated).To(BeFalse())
		s.expectOpenAsleep(w.pods.Name, w.nodes.Name)
		s.wakeUp()
	})
	s.story("not at all, after a flow that failed", func() {
		s.gardenlet.FailAt(bench.StepHibernateControlPlane)
		s.hibernate()
		s.expectOpenAsleep(w.pods.Name, w.nodes.Name)
		s.wakeUp()
	})
}
