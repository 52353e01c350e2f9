// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// owner is a controller that puts its own values back whenever it finds others.
type owner struct {
	stop   context.CancelFunc
	ending sync.WaitGroup
}

// anOwnerReverts starts an owner of the configuration policies. It ends with the test or by end.
func (s *theShoot) anOwnerReverts() *owner {
	ctx, cancel := context.WithCancel(s.ctx)
	o := &owner{stop: cancel}
	patch := client.RawPatch(types.StrategicMergePatchType, []byte(`{"webhooks":[`+
		`{"name":"strict.hooks.example.com","failurePolicy":"Fail","timeoutSeconds":10},`+
		`{"name":"slow.hooks.example.com","failurePolicy":"Ignore","timeoutSeconds":20}]}`))
	o.ending.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				policies := &admissionregistrationv1.ValidatingWebhookConfiguration{}
				policies.Name = s.full("policies")
				_ = s.shoot().Patch(ctx, policies, patch, client.FieldOwner("kyverno")) // ctx has ended, or the next one succeeds
			}
		}
	})
	s.t.Cleanup(o.end)
	return o
}

func (o *owner) end() {
	o.stop()
	o.ending.Wait()
}

// opens are the guard's patches of the configuration policies that were accepted.
func (s *theShoot) opens() []request {
	return s.gate.seen(func(r request) bool { return isPatch(r) && r.name == s.full("policies") && r.code == 200 })
}

func TestLiveOwnerIsNotFought(t *testing.T) {
	s := newShoot(t)
	s.anOwnerReverts()
	s.flowBegins(true)
	s.call()
	for range 3 {
		s.aPassLater()
	}
	s.Expect(s.opens()).To(HaveLen(1), "the call's own")
	s.Expect(s.standing()).To(HaveKeyWithValue("policies/strict", "Fail 10s"))
	s.call() // once more, as a flow that is tried again
	s.Expect(s.opens()).To(HaveLen(1))
}

func TestHookOfALiveOwnerIsOpenedWhenTheBackendGoes(t *testing.T) {
	s := newShoot(t)
	reverting := s.anOwnerReverts()
	s.flowBegins(true)
	s.call()
	s.Eventually(s.standing).Should(HaveKeyWithValue("policies/strict", "Fail 10s"))
	reverting.end()
	s.nodesGo()
	s.Eventually(s.standing).WithTimeout(3 * time.Second).Should(Equal(open))
}

func TestOwnerThatRevertsWithoutABackendIsOpenedAgainAndAgainWithBackOff(t *testing.T) {
	s := newShoot(t)
	s.flowBegins(true)
	s.call()
	s.nodesGo()
	s.aPassLater()
	s.gate.forget()
	reverting := s.anOwnerReverts()
	s.Eventually(s.opens).Should(HaveLen(4))
	first := s.opens()
	for i, least := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		gap := first[i+1].at.Sub(first[i].at)
		t.Logf("open %d after %s", i+2, gap.Round(10*time.Millisecond))
		s.Expect(gap).To(And(BeNumerically(">", least-100*time.Millisecond), BeNumerically("<", least+3*time.Second)))
	}
	for n := 5; n <= 7; n++ {
		s.later(15 * time.Second)
		s.Eventually(s.opens).Should(HaveLen(n))
	}
	s.Eventually(func() any { return s.guardStatus().Hooks }).Should(ContainElement(And(
		HaveField("Reason", "RevertedByOwner"), HaveField("Message", ContainSubstring("kyverno")))))
	reverting.end()
	s.later(15 * time.Second)
	s.Eventually(s.standing).Should(Equal(open))
	s.apiServerStops()
	s.flowEnds()
	s.wakesUp()
	s.nodesJoin()
	s.Eventually(s.standing).Should(Equal(own))
	s.Eventually(s.leftovers).Should(BeEmpty())
}

func TestOwnerThatRevertsWithoutABackendDoesNotHoldTheNextAttemptBack(t *testing.T) {
	s := newShoot(t)
	s.flowBegins(true)
	s.call()
	s.goes("backend")
	s.aPassLater()
	s.anOwnerReverts()
	for range 3 {
		s.flowFails()
		s.flowBegins(true)
		s.call()
		s.Expect(s.state().Cycle.FirstHeldBack).To(BeNil())
	}
}

func TestForeignValueSetWhileOpenBecomesTheOriginal(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	s.wakesUp()
	s.set("policies", 0, "Fail", 7)
	s.Eventually(s.standing).Should(Equal(open), "held open")
	s.Expect(s.recorded()).To(HaveKeyWithValue("policies/strict", "Fail 7s"))
	s.set("policies", 1, "Fail", 12)
	s.Eventually(s.recorded).Should(HaveKeyWithValue("policies/slow", "Fail 12s"))
	s.nodesJoin()
	s.Eventually(s.standing).Should(Equal(with(with(own, "policies/strict", "Fail 7s"), "policies/slow", "Fail 12s")))
	s.Eventually(s.leftovers).Should(BeEmpty())
}

func TestOwnerThatRestoresByItselfIsCountedApart(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	s.wakesUp()
	s.nodeJoins()
	s.comesBack("backend")
	s.set("policies", 0, "Fail", 10)
	s.set("policies", 1, "Ignore", 20)
	s.flowEnds()
	s.Eventually(s.standing).Should(Equal(own))
	s.Eventually(s.leftovers).Should(BeEmpty())
	s.Eventually(func() any { return s.state().Cycle }).Should(BeNil())
	s.Expect(s.guardStatus()).To(And(HaveField("Restored", BeEquivalentTo(1)), HaveField("RestoredByOwner", BeEquivalentTo(2))))
}

// helm applies a configuration as helm, Flux or Argo do on the server's side, without force.
func (s *theShoot) helm(hooks ...hookOf) error {
	o := s.newValidating("chart", hooks...)
	o.APIVersion, o.Kind = "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"
	object, err := toUnstructured(o)
	s.Expect(err).NotTo(HaveOccurred())
	return s.shoot().Apply(s.ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("helm"))
}

func TestHelmMeetsNeitherConflictNorDriftAfterACycle(t *testing.T) {
	s := newShoot(t)
	s.Expect(s.helm(hookOf{name: "a", policy: "Fail", timeout: 15}, hookOf{name: "b", policy: "Fail"})).To(Succeed())
	s.before = s.snapshot()
	s.t.Cleanup(func() { _ = s.shoot().Delete(context.Background(), s.newValidating("chart")) })
	s.hibernates()
	s.wakesUp()
	s.Expect(s.standing()).To(And(HaveKeyWithValue("chart/a", "Ignore 3s"), HaveKeyWithValue("chart/b", "Ignore 3s")))
	s.nodesJoin()
	s.Eventually(s.changed).Should(BeEmpty())
	s.Expect(s.helm(hookOf{name: "a", policy: "Fail", timeout: 15}, hookOf{name: "b", policy: "Fail"})).To(Succeed())
	s.Expect(s.changed()).To(BeEmpty())
	s.Expect(s.helm(hookOf{name: "a", policy: "Ignore"}, hookOf{name: "b", policy: "Fail", timeout: 5})).To(Succeed())
	s.Expect(s.standing()).To(And(HaveKeyWithValue("chart/a", "Ignore 10s"), HaveKeyWithValue("chart/b", "Fail 5s")))
}
