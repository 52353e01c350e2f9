// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/access"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

func TestDisabledWhileWakingUpIsHeldUntilAllIsGivenBack(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	s.wakesUp()
	s.disabled()
	s.aPassLater()
	s.Expect(s.find()).NotTo(BeNil())
	s.nodesJoin()
	s.Eventually(s.find).Should(BeNil())
	s.Expect(s.changed()).To(BeEmpty())
}

func TestDisabledWhileAwakeWithHooksOpenIsHeldForTwoMinutes(t *testing.T) {
	s := newShoot(t, withConfig(quick+`,"wakingUp":{"deadline":"1m"}`))
	s.hibernates()
	s.wakesUp()
	s.nodeJoins()
	s.flowEnds()
	s.Eventually(func() any { return s.state().Cycle.FirstReadyNode }).ShouldNot(BeNil())
	s.later(time.Minute)
	s.Eventually(s.condition).Should(HavePrefix("False WebhooksStillFailOpen"))

	begin := time.Now()
	s.disabled()
	s.clock.ahead.Store(int64(110*time.Second - time.Since(begin)))
	s.Consistently(s.find).WithTimeout(6 * time.Second).ShouldNot(BeNil())
	s.clock.ahead.Store(int64(2 * time.Minute))
	s.Eventually(s.find).Should(BeNil())
	s.Expect(s.standing()).To(Equal(open))
	s.Expect(s.read("policies").Annotations).To(HaveKey(v1alpha1.OriginalsAnnotation))
	s.Eventually(s.events).Should(ContainElement("LeftFailOpen"))
}

func TestDisabledWhileAsleepIsHeldAndWakesUp(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	s.flowBegins(true)
	s.disabled()
	s.flowEnds()
	s.flowBegins(false)
	s.apiServerStarts()
	s.disabled() // as every flow does; it does not call any more
	s.aPassLater()
	s.Expect(s.standing()).To(Equal(open))
	s.nodesJoin()
	s.Eventually(s.find).Should(BeNil())
	s.Expect(s.changed()).To(BeEmpty())
}

func TestDisabledInTheEditThatHibernatesStillOpensAndWakesUp(t *testing.T) {
	s := newShoot(t)
	s.flowBegins(true)
	s.disabled() // early in the flow, and not waited for
	s.Eventually(s.standing).Should(Equal(open))
	s.Expect(s.state().Cycle.Direction).To(Equal(v1alpha1.DirectionHibernate))
	s.nodesGo()
	s.apiServerStops()
	s.flowEnds()
	s.Consistently(s.find).ShouldNot(BeNil())
	s.flowBegins(false)
	s.apiServerStarts()
	s.disabled()
	s.aPassLater()
	s.Expect(s.standing()).To(Equal(open))
	s.nodesJoin()
	s.Eventually(s.find).Should(BeNil())
	s.Expect(s.changed()).To(BeEmpty())
}

func TestDisabledInTheEditThatHibernatesOpensOnceTheShootCanBeWritten(t *testing.T) {
	s := newShoot(t)
	refused := s.gate.fails(always, wrong["500"], isPatch)
	s.flowBegins(true)
	s.disabled()
	s.Eventually(func() int { return s.gate.hits(refused) }).Should(BeNumerically(">", 0))
	s.gate.mend()
	s.Eventually(s.standing).Should(Equal(open), "a call that failed is still a call when it is tried again")
}

func TestEnabledAgainWhileHeldIsAnswered(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	s.flowBegins(true)
	s.disabled()
	s.call() // by gardenlet's own wait
	s.flowEnds()
	s.wakesUp()
	s.Expect(s.lookup().DeletionTimestamp).NotTo(BeNil())
	s.Expect(s.standing()).To(Equal(open))
	s.nodesJoin()
	s.Eventually(s.find).Should(BeNil())
	s.Expect(s.changed()).To(BeEmpty())
	s.flowBegins(false)
	s.call() // the next flow makes a new one
	s.Expect(s.lookup().DeletionTimestamp).To(BeNil())
}

func TestDisabledWithNothingOpenIsGoneAtOnce(t *testing.T) {
	s := newShoot(t)
	s.flowBegins(false)
	s.disabled()
	s.Eventually(s.find).WithTimeout(3 * time.Second).Should(BeNil())
	s.Expect(s.touched()).To(BeEmpty())
}

func TestShootDeletionWhileOpenReleasesAndWritesNothing(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	s.gate.forget()
	s.sync(func(shoot *gardencorev1beta1.Shoot) {
		shoot.DeletionTimestamp = &s.lookup().CreationTimestamp
		shoot.Status.LastOperation.Type = gardencorev1beta1.LastOperationTypeDelete
		shoot.Status.LastOperation.State = gardencorev1beta1.LastOperationStateProcessing
	})
	s.apiServerStarts() // gardenlet wakes the control plane for the deletion
	s.Expect(s.gardenlet(true).DestroyBeforeKubeAPIServer(s.ctx)).To(Succeed())
	s.Expect(s.gardenlet(true).WaitCleanupBeforeKubeAPIServer(s.ctx)).To(Succeed())
	s.Expect(s.touched()).To(BeEmpty())
}

func TestForceDeletionReleasesAtOnce(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	s.sync(func(shoot *gardencorev1beta1.Shoot) {
		shoot.Annotations = map[string]string{v1beta1constants.AnnotationConfirmationForceDeletion: "true"}
		shoot.DeletionTimestamp = &s.lookup().CreationTimestamp
	})
	s.nudge()
	s.Expect(s.gardenlet(true).Destroy(s.ctx)).To(Succeed())
	s.Eventually(s.find).Should(BeNil())
}

func TestMigrationWritesNothingAndKeepsTheRecord(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	record := s.state()
	s.Expect(record.Hooks).To(HaveLen(3))
	s.gate.forget()
	s.flow(gardencorev1beta1.LastOperationTypeMigrate, true)
	s.apiServerStarts()
	s.Expect(s.gardenlet(true).MigrateBeforeKubeAPIServer(s.ctx)).To(Succeed())
	s.Expect(s.gardenlet(true).WaitMigrateBeforeKubeAPIServer(s.ctx)).To(Succeed())
	s.Eventually(func() []string { return s.lookup().Finalizers }).Should(BeEmpty())
	s.Expect(s.state()).To(Equal(record))
	s.nudge()
	s.Consistently(s.touched).Should(BeEmpty())
}

func TestRestoreOnAnotherSeedGoesOnWithTheRecord(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	s.flow(gardencorev1beta1.LastOperationTypeMigrate, true)
	s.Expect(s.gardenlet(true).MigrateBeforeKubeAPIServer(s.ctx)).To(Succeed())
	s.Expect(s.gardenlet(true).WaitMigrateBeforeKubeAPIServer(s.ctx)).To(Succeed())
	carried := s.shootState()
	s.disabled()
	s.Eventually(s.find).Should(BeNil())

	s.flow(gardencorev1beta1.LastOperationTypeRestore, true)
	for range 2 { // a flow that fails afterwards restores once more
		s.restores(carried)
		s.Expect(s.recorded()).To(HaveLen(3))
	}
	s.flowEnds()
	s.wakesUp()
	s.Expect(s.standing()).To(Equal(open))
	s.tokens(access.SecretName) // of the new seed, as soon as gardener-resource-manager runs
	s.nodesJoin()
	s.Eventually(s.changed).Should(BeEmpty())
}
