// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

func TestUnusableConfigOfAnAwakeShootIsAnErrorThatNamesTheField(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ config, says string }{
		"unknown field":          {guardConfig(`,"stabilisation":"1s"`), `stabilisation`},
		"wrong value":            {guardConfig(`,"mode":"Off"`), `mode`},
		"wrong type":             {guardConfig(`,"openTimeouts":{"mutating":"one"}`), `openTimeouts`},
		"value out of range":     {guardConfig(`,"openTimeouts":{"validating":31}`), `openTimeouts.validating`},
		"duration without unit":  {guardConfig(`,"wakingUp":{"deadline":"5"}`), `wakingUp.deadline`},
		"rule that says nothing": {guardConfig(`,"webhooks":[{"action":"Leave"}]`), `webhooks[0]`},
		"wrong kind":             {`{"apiVersion":"hibernation-guard.extensions.gardener.cloud/v1alpha1","kind":"GuardState"}`, `GuardConfig`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShoot(t)
			good := s.providerConfig
			s.providerConfig = c.config
			s.flowBegins(false)
			s.Expect(s.callFails()).To(And(ContainSubstring("spec.providerConfig"), ContainSubstring(c.says)))
			s.Expect(s.condition()).To(And(HavePrefix("Progressing ConfigInvalid"), ContainSubstring(c.says)))
			s.providerConfig = good
			s.call()
			s.Expect(s.condition()).To(HavePrefix("True WebhooksEnforced"))
		})
	}
}

func TestConfigWithANullIsNotRecordedAgain(t *testing.T) {
	s := newShoot(t, withConfig(quick+`,"webhooks":null`))
	s.call()
	s.Eventually(func() any { return s.state().LastGoodConfig }).ShouldNot(BeNil())
	settled := time.Now()
	s.call()
	written, err := servers.Seed.Audit().Writes(bench.Filter{
		Group: "extensions.gardener.cloud", Resource: "extensions/status", Namespace: s.name, Since: settled,
	})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(slices.DeleteFunc(written, func(e auditv1.Event) bool {
		return e.RequestObject == nil || !strings.Contains(string(e.RequestObject.Raw), "lastGoodConfig")
	})).To(BeEmpty(), "what differs is only a null, which an object in etcd does not keep")
}

func TestNoConfigMeansAllDefaults(t *testing.T) {
	s := newShoot(t, func(s *theShoot) { s.providerConfig = "" })
	s.flowBegins(true)
	s.call()
	s.Expect(s.standing()).To(Equal(open))
}

func TestUnusableConfigAtWakeUpDoesNotStandInTheWay(t *testing.T) {
	s := newShoot(t, withConfig(quick+`,"openTimeouts":{"validating":7}`))
	seven := with(with(open, "policies/strict", "Ignore 7s"), "policies/slow", "Ignore 7s")
	s.hibernates()
	s.providerConfig = guardConfig(`,"stabilization":"soon"`)
	s.wakesUp()
	s.Expect(s.standing()).To(Equal(seven), "the last good one applies")
	s.nodesJoin()
	s.Eventually(s.changed).WithTimeout(10*time.Second).Should(BeEmpty(), "within 20 s, the default stabilization")
	s.Eventually(s.condition).Should(And(HavePrefix("Progressing ConfigInvalid"), ContainSubstring("stabilization")))
}

func TestUnusableConfigAndNoGoodOneMeansDefaults(t *testing.T) {
	s := newShootWithoutExtension(t)
	s.flowBegins(true)
	s.nodesGo()
	s.apiServerStops()
	s.flowEnds()
	s.providerConfig = guardConfig(`,"mode":"Off"`)
	s.flowBegins(true)
	s.call()
	s.flowEnds()
	s.wakesUp()
	s.Expect(s.standing()).To(Equal(open))
}

func TestRulesOfTheConfigOverrideTheScope(t *testing.T) {
	s := newShoot(t, func(s *theShoot) {
		s.providerConfig = guardConfig(quick + `,"webhooks":[{"hook":"slow.hooks.example.com","action":"Leave"},{"hook":"foreign.hooks.example.com","action":"Guard"}]`)
	})
	s.flowBegins(true)
	s.call()
	s.Expect(s.standing()).To(Equal(with(with(open, "policies/slow", "Ignore 20s"), "crds/foreign", "Ignore 3s")))
}

func ignored(shoot *gardencorev1beta1.Shoot) {
	shoot.Annotations = map[string]string{v1beta1constants.ShootIgnore: "true"}
}

func TestIgnoredShootWhoseClusterFlipsIsNotTouched(t *testing.T) {
	s := newShoot(t)
	s.sync(ignored)
	for _, hibernate := range []bool{true, false} {
		s.flowBegins(hibernate) // the spec that is synced; there is no flow
		s.nudge()
		s.restartController()
		s.nudge()
		s.Consistently(s.touched).Should(BeEmpty())
	}
	s.Expect(s.standing()).To(Equal(own))
}

func TestIgnoredShootIsNotTouchedByACallThatIsLeftOver(t *testing.T) {
	s := newShoot(t)
	s.sync(ignored)
	s.flowBegins(true)
	s.controller.end()
	s.asked()
	s.startController()
	s.Eventually(func() any { return s.lookup().Annotations }).ShouldNot(HaveKey(v1beta1constants.GardenerOperation))
	s.nudge()
	s.Consistently(s.touched).Should(BeEmpty())
}

func TestLeftOverCallIsNoWordOfAFlow(t *testing.T) {
	t.Parallel()
	for name, stale := range map[string]func(*theShoot){
		"older than ten minutes":   func(s *theShoot) { s.clock.ahead.Store(int64(11 * time.Minute)) },
		"of a flow that has ended": func(s *theShoot) { s.flowFails() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShoot(t)
			s.flowBegins(true)
			s.controller.end()
			s.asked()
			stale(s)
			s.startController()
			s.Eventually(func() any { return s.lookup().Annotations }).ShouldNot(HaveKey(v1beta1constants.GardenerOperation))
			s.nudge()
			s.Consistently(s.touched).Should(BeEmpty())
		})
	}
}
