// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/access"
)

func TestClaimThatCannotBeGivenUpHoldsTheExtensionForTwoMinutes(t *testing.T) {
	s, _ := newFlaggedShoot(t)
	s.enabled()
	s.Eventually(s.claimed).Should(ConsistOf("on-nodes"))
	refused := s.gate.fails(always, wrong["500"], isPatch)
	s.flowBegins(false)
	s.disabled()
	s.Eventually(func() int { return s.gate.hits(refused) }).Should(BeNumerically(">", 0))
	s.Consistently(s.find).ShouldNot(BeNil())
	s.clock.ahead.Store(int64(2 * time.Minute))
	s.Eventually(s.find).Should(BeNil())
}

func TestDisabledWhileAsleepGivesClaimsUpAtTheEnd(t *testing.T) {
	s, _ := newFlaggedShoot(t)
	s.enabled()
	s.Eventually(s.claimed).Should(ConsistOf("on-nodes"))
	s.hibernates()
	s.flowBegins(true)
	s.disabled()
	s.flowEnds()
	s.flowBegins(false)
	s.apiServerStarts()
	s.disabled()
	s.nodeJoins()
	s.comesBack("backend")
	s.Eventually(s.find).Should(BeNil())
	s.Expect(s.label("on-nodes")).To(BeEmpty())
	s.Expect(s.changed()).To(BeEmpty())
}

func TestDisabledWithAMigrationGivesClaimsUp(t *testing.T) {
	for name, play := range map[string]func(s *theShoot){
		"deleted in the migration's flow": func(s *theShoot) {
			s.flow(gardencorev1beta1.LastOperationTypeMigrate, false)
			s.disabled()
		},
		"held, and then migrated": func(s *theShoot) {
			refused := s.gate.fails(always, wrong["500"], isPatch)
			s.flowBegins(false)
			s.disabled()
			s.Eventually(func() int { return s.gate.hits(refused) }).Should(BeNumerically(">", 0))
			s.gate.mend()
			s.flow(gardencorev1beta1.LastOperationTypeMigrate, false)
			s.Expect(s.gardenlet(true).MigrateBeforeKubeAPIServer(s.ctx)).To(Succeed())
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newFlaggedShoot(t)
			s.enabled()
			s.Eventually(s.claimed).Should(ConsistOf("on-nodes"))
			play(s)
			s.Eventually(s.find).Should(BeNil())
			s.Expect(s.label("on-nodes")).To(BeEmpty())
		})
	}
}

func TestMigrationKeepsClaimsOnRecord(t *testing.T) {
	s, _ := newFlaggedShoot(t)
	s.enabled()
	s.Eventually(s.claimed).Should(ConsistOf("on-nodes"))
	s.gate.forget()
	s.flow(gardencorev1beta1.LastOperationTypeMigrate, false)
	s.Expect(s.gardenlet(true).MigrateBeforeKubeAPIServer(s.ctx)).To(Succeed())
	s.Expect(s.gardenlet(true).WaitMigrateBeforeKubeAPIServer(s.ctx)).To(Succeed())
	s.Expect(s.touched()).To(BeEmpty())
	carried := s.shootState()
	s.disabled()
	s.Eventually(s.find).Should(BeNil())
	s.flow(gardencorev1beta1.LastOperationTypeRestore, false)
	s.restores(carried)
	s.tokens(access.SecretName)
	s.flowEnds()
	s.Eventually(s.gateSays).Should(Equal("Lifted"))
	s.Expect(s.claimed()).To(ConsistOf("on-nodes"))
}
