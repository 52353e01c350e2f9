//go:build e2e

// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

func TestGardenletPlaysWhatGoesWrong(t *testing.T) {
	s := newStage(t, bench.GardenletOptions{})
	s.timed(t, "creation", s.gardenlet.Reconcile)
	s.extension.taken()

	t.Run("a flow does not begin that would not come to the step it is to fail at", func(t *testing.T) {
		s.WithT = NewWithT(t)
		s.forgetSteps()
		s.gardenlet.FailAt(bench.StepHibernateControlPlane)
		s.Expect(s.gardenlet.Reconcile(s.ctx)).To(MatchError(ContainSubstring("or skips it")))
		s.Expect(s.index(bench.StepDeployKubeAPIServer)).To(Equal(-1))
		s.gardenlet.FailAt("")
	})
	t.Run("an API server that is stopped by hand stays down", func(t *testing.T) {
		s.WithT = NewWithT(t)
		s.Expect(s.bench.Shoot.StopAPIServer(s.ctx)).To(Succeed())
		s.Eventually(func() string { return fmt.Sprint(s.replicas("kube-apiserver")) }).WithTimeout(5 * time.Second).Should(Equal("1 0"))
		s.Consistently(s.bench.Shoot.Running).Should(BeFalse())
		s.Expect(s.bench.Shoot.StartAPIServer(s.ctx)).To(Succeed())
		s.Eventually(func() string { return fmt.Sprint(s.replicas("kube-apiserver")) }).WithTimeout(5 * time.Second).Should(Equal("1 1"))
	})
	t.Run("a Failed Shoot only gets its Cluster synced, until its spec changes", func(t *testing.T) {
		s.WithT = NewWithT(t)
		s.gardenlet.Edit(func(shoot *gardencorev1beta1.Shoot) {
			shoot.Status.LastOperation.State = gardencorev1beta1.LastOperationStateFailed
		})
		s.timed(t, "reconcile", s.gardenlet.Reconcile)
		s.Expect(s.cluster().Status.LastOperation.State).To(Equal(gardencorev1beta1.LastOperationStateFailed))
		s.Expect(s.extension.taken()).To(BeEmpty())
	})
	t.Run("an ignored Shoot only gets its Cluster synced", func(t *testing.T) {
		s.WithT = NewWithT(t)
		s.gardenlet.Edit(ignore)
		s.gardenlet.Edit(enableHibernation)
		s.timed(t, "reconcile", s.gardenlet.Reconcile)
		s.Expect(*s.cluster().Spec.Hibernation.Enabled).To(BeTrue())
		s.Expect(s.extension.taken()).To(BeEmpty())
		s.gardenlet.Edit(func(shoot *gardencorev1beta1.Shoot) { shoot.Annotations = nil })
	})
	t.Run("an extension that fails aborts the flow with Gardener's message", func(t *testing.T) {
		s.WithT = NewWithT(t)
		s.forgetSteps()
		s.extension.failWith(func(string) error { return errors.New("the hooks do not open") })
		begin := time.Now()
		err := s.gardenlet.Reconcile(s.ctx)
		t.Logf("failed after %s: %v", time.Since(begin).Round(time.Second), err)
		s.Expect(err).To(MatchError(ContainSubstring(
			`Error while waiting for Extension %s/%s to become ready: error during reconciliation: Error reconciling Extension: the hooks do not open`,
			s.bench.Namespace, bench.ExtensionType)))
		s.Expect(s.index(bench.StepDeployWorkers)).To(Equal(-1))
		s.Expect(s.bench.Machines.Nodes()).To(HaveLen(1))
		last := s.gardenlet.Shoot().Status.LastOperation
		s.Expect(last.State).To(Equal(gardencorev1beta1.LastOperationStateError))
		s.Expect(last.Description).To(ContainSubstring("the hooks do not open"))
		s.extension.failWith(nil)
	})
	t.Run("hibernation is cancelled after the workers were told to go", func(t *testing.T) {
		s.WithT = NewWithT(t)
		nodes := s.bench.Machines.Nodes()
		s.gardenlet.StopAfter(bench.StepDeployWorkers)
		s.Expect(s.gardenlet.Reconcile(s.ctx)).To(MatchError(bench.ErrStopped))
		s.Expect(s.gardenlet.Shoot().Status.LastOperation.State).To(Equal(gardencorev1beta1.LastOperationStateProcessing))
		s.gardenlet.Edit(disableHibernation)
		s.timed(t, "cancellation", s.gardenlet.Reconcile)
		s.expectAwake()
		s.Expect(s.bench.Machines.Nodes()).NotTo(Equal(nodes), "a machine that was told to go goes")
	})
	t.Run("hibernation is cancelled after the API server was down", func(t *testing.T) {
		s.WithT = NewWithT(t)
		s.gardenlet.StopAfter(bench.StepHibernateControlPlane)
		s.Expect(s.gardenlet.Hibernate(s.ctx)).To(MatchError(bench.ErrStopped))
		s.Expect(s.bench.Shoot.Running()).To(BeFalse())
		s.Expect(s.gardenlet.Shoot().Status.IsHibernated).To(BeFalse())
		s.gardenlet.Edit(disableHibernation)
		s.timed(t, "cancellation", s.gardenlet.Reconcile)
		s.expectAwake()
		s.extension.taken()
	})
	t.Run("an extension that is disabled in the edit that hibernates is deleted early and not awaited", func(t *testing.T) {
		s.WithT = NewWithT(t)
		s.forgetSteps()
		s.extension.failWith(func(string) error { return errors.New("held") })
		s.gardenlet.Edit(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Extensions = nil })
		s.timed(t, "hibernation", s.gardenlet.Hibernate)
		s.expectAsleep()
		s.Expect(s.index(bench.StepDeleteStaleExtensions)).To(BeNumerically("<", s.index(bench.StepWaitWorkers)))
		extension, err := s.getExtension()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(extension.DeletionTimestamp).NotTo(BeNil())
		s.extension.failWith(nil)
		s.timed(t, "wake-up", s.gardenlet.WakeUp)
		s.expectAwake()
		_, err = s.getExtension()
		s.Expect(apierrors.IsNotFound(err)).To(BeTrue())
	})
	t.Run("a hibernation that hangs is forced", func(t *testing.T) {
		s.WithT = NewWithT(t)
		s.timed(t, "sleep by force", s.gardenlet.ForceSleep)
		s.expectAsleep()
		s.timed(t, "wake-up", s.gardenlet.WakeUp)
		s.expectAwake()
	})
}

func TestGardenletMovesAndForcesAShoot(t *testing.T) {
	s := newStage(t, bench.GardenletOptions{})
	s.timed(t, "creation", s.gardenlet.Reconcile)
	s.extension.taken()

	var state *gardencorev1beta1.ShootState
	s.timed(t, "migration", func(ctx context.Context) (err error) {
		state, err = s.gardenlet.Migrate(ctx)
		return err
	})
	s.Expect(slices.Compact(s.extension.taken())).To(Equal([]string{"migrate"}))
	s.Expect(state.Spec.Extensions).To(HaveLen(1))
	s.Expect(string(state.Spec.Extensions[0].State.Raw)).To(Equal(`{"cycle":"first"}`))
	s.Expect(s.bench.Shoot.Running()).To(BeFalse())
	s.expectNothingOnSeed()

	s.forgetSteps()
	s.gardenlet.FailAt(bench.StepWaitTunnel)
	s.timed(t, "restoration with a retry", func(ctx context.Context) error { return s.gardenlet.Restore(ctx, state) })
	// The library may reconcile, or restore, once more when it sees its own status updates.
	calls := slices.DeleteFunc(s.extension.taken(), func(call string) bool { return call == "reconcile" })
	s.Expect(len(calls)).To(BeNumerically(">=", 2))
	s.Expect(calls).To(HaveEach(`restore {"cycle":"first"}`))
	s.expectAwake()
	s.Expect(s.gardenlet.Shoot().Status.LastOperation.Type).To(Equal(gardencorev1beta1.LastOperationTypeRestore))

	s.timed(t, "deletion by force", s.gardenlet.ForceDelete)
	s.Expect(slices.Compact(s.extension.taken())).To(Equal([]string{"force-delete"}))
	s.expectNothingOnSeed()
}
