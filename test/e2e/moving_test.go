//go:build e2e

// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

func TestControlPlaneMoves(t *testing.T) {
	s := newStage(t, bench.Options{}, shortStabilization)
	w := s.installInHouse(admissionregistrationv1.OperationAll)
	restore := func(ctx context.Context) error { return s.gardenlet.Restore(ctx, nil) }

	s.story("to another seed while asleep, with a restore that is retried", func() {
		s.hibernate()
		recorded := len(s.state().Hooks)
		s.Expect(recorded).To(Equal(2))
		begin := time.Now()
		s.migrate()
		s.expectNoWrites(begin)
		s.Expect(s.rightsDeleted(begin)).To(BeZero(), "the rights stay in the Shoot")
		s.gardenlet.FailAt(bench.StepWaitHibernatedExtension)
		s.within(4*time.Minute, restore)
		s.Expect(s.state().Hooks).To(HaveLen(recorded))
		s.wakeUp()
	})
	s.story("to another seed while hooks are open", func() {
		s.stopped(bench.StepWaitHibernatedExtension, s.gardenlet.Hibernate)
		s.Expect(s.policy(w.pods)).To(Equal("Ignore"))
		// Gardener restores a Shoot that is to hibernate without an API server, and machines cannot go.
		s.gardenlet.Edit(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Hibernation.Enabled = ptr.To(false) })
		s.migrate()
		s.within(4*time.Minute, restore)
	})
	t.Run("the Shoot is deleted while hooks are open", func(t *testing.T) {
		if s.parent.Failed() {
			t.Skip("an earlier story failed on this stage")
		}
		s.WithT, s.t = NewWithT(t), t
		s.hibernate()
		s.expectOpenAsleep(w.pods.Name, w.nodes.Name)
		begin := time.Now()
		s.expectDeleted(s.gardenlet.Delete)
		s.expectNoWrites(begin)
	})
}

func TestShootIsDeletedByForce(t *testing.T) {
	s := newStage(t, bench.Options{}, shortStabilization)
	w := s.installInHouse(admissionregistrationv1.OperationAll)
	s.hibernate()
	s.expectOpenAsleep(w.pods.Name, w.nodes.Name)
	begin := time.Now()
	s.expectDeleted(s.gardenlet.ForceDelete)
	s.expectNoWrites(begin)
}

func (s *stage) migrate() {
	s.t.Helper()
	s.within(4*time.Minute, func(ctx context.Context) error {
		_, err := s.gardenlet.Migrate(ctx)
		return err
	})
	s.Expect(s.extension()).To(BeNil())
}

func (s *stage) expectDeleted(flow func(context.Context) error) {
	s.t.Helper()
	begin := time.Now()
	s.within(4*time.Minute, flow)
	s.Expect(s.gardenlet.Shoot()).To(BeNil())
	s.Expect(s.extension()).To(BeNil())
	s.t.Logf("deleted after %s", since(begin))
}

// expectNoWrites expects that the extension wrote nothing to the Shoot since begin.
func (s *stage) expectNoWrites(begin time.Time) {
	s.t.Helper()
	writes, err := s.bench.Shoot.Audit().Writes(bench.Filter{UserAgent: bench.ControllerAgent, Since: begin})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(writes).To(BeEmpty())
}
