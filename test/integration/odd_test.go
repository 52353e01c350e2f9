// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

func (s *theShoot) storeObject(o *admissionregistrationv1.ValidatingWebhookConfiguration) {
	o.APIVersion, o.Kind = "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"
	o.UID, o.Generation, o.CreationTimestamp = uuid.NewUUID(), 1, metav1.Now()
	s.Expect(servers.Shoot.Store(s.ctx, "/registry/validatingwebhookconfigurations/"+o.Name, o)).To(Succeed())
	ctx := context.WithoutCancel(s.ctx)
	s.t.Cleanup(func() { NewWithT(s.t).Expect(client.IgnoreNotFound(s.shoot().Delete(ctx, o))).To(Succeed()) })
	s.Eventually(func() error { return s.shoot().Get(s.ctx, client.ObjectKeyFromObject(o), o.DeepCopy()) }).Should(Succeed())
	s.before = s.snapshot()
}

func TestOddConfigurationsGoThroughACycleUnharmed(t *testing.T) {
	t.Parallel()
	var hundred []hookOf
	hundredOpen, hundredOwn := map[string]string{}, map[string]string{}
	for i := range 100 {
		name := fmt.Sprintf("h%02d", i)
		hundred = append(hundred, hookOf{name: name, policy: "Fail", timeout: int32(1 + i%30)})
		hundredOwn["odd/"+name] = fmt.Sprintf("Fail %ds", 1+i%30)
		hundredOpen["odd/"+name] = fmt.Sprintf("Ignore %ds", min(3, 1+i%30))
	}
	for name, c := range map[string]struct {
		create      func(*theShoot)
		opened, own map[string]string
	}{
		"without hooks": {create: func(s *theShoot) { s.validating("odd") }},
		"without policy and timeout": {
			create: func(s *theShoot) { s.validating("odd", hookOf{name: "nil"}) },
			opened: map[string]string{"odd/nil": "Ignore 3s"}, own: map[string]string{"odd/nil": "Fail 10s"},
		},
		"stored without policy and timeout, and without managed fields": {
			create: func(s *theShoot) { s.storeObject(s.newValidating("odd", hookOf{name: "nil"})) },
			opened: map[string]string{"odd/nil": "Ignore 3s"}, own: map[string]string{"odd/nil": "Fail 10s"},
		},
		"with a hundred hooks": {
			create: func(s *theShoot) { s.validating("odd", hundred...) }, opened: hundredOpen, own: hundredOwn,
		},
		"with annotations that leave no room": {
			create: func(s *theShoot) { s.create(s.crowded("odd", hookOf{name: "crowded", policy: "Fail", timeout: 10})) },
			opened: map[string]string{"odd/crowded": "Ignore 3s"}, own: map[string]string{"odd/crowded": "Fail 10s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShoot(t)
			c.create(s)
			s.before = s.snapshot()
			s.hibernates()
			s.wakesUp()
			s.Expect(s.standing()).To(Equal(both(open, c.opened)))
			s.nodesJoin()
			s.Eventually(s.standing).Should(Equal(both(own, c.own)))
			s.Eventually(s.changed).Should(BeEmpty())
			s.Eventually(s.condition).Should(HavePrefix("True WebhooksEnforced"))
			for configuration, n := range s.writesOf() {
				s.Expect(n).To(BeNumerically("<=", 4), configuration)
			}
		})
	}
}

// writesOf counts the guard's writes that were accepted by configuration.
func (s *theShoot) writesOf() map[string]int {
	out := map[string]int{}
	for _, r := range s.writes() {
		if r.code == 200 {
			out[r.name]++
		}
	}
	return out
}

func both(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// crowded is a configuration with no room for another annotation; the API allows 256 KiB.
func (s *theShoot) crowded(name string, hooks ...hookOf) *admissionregistrationv1.ValidatingWebhookConfiguration {
	o := s.newValidating(name, hooks...)
	o.Annotations = map[string]string{"example.com/large": strings.Repeat("x", 256*1024-30)}
	return o
}

func TestRecordLostOfAConfigurationWithoutRoomForTheAnnotation(t *testing.T) {
	s := newShoot(t)
	s.create(s.crowded("crowded", hookOf{name: "crowded", policy: "Fail", timeout: 10}))
	s.hibernates()
	s.loseRecord()
	s.wakesUp()
	s.nodesJoin()
	s.Eventually(s.standing).Should(Equal(with(own, "crowded/crowded", "Ignore 3s")))
	s.Eventually(s.condition).Should(And(HavePrefix("False OriginalUnknown"), ContainSubstring("crowded.hooks")))
}

func TestSelectorLessServiceCountsAsReadyAfterFiveMinutes(t *testing.T) {
	s := newShoot(t)
	s.service("manual")
	s.edited("manual")
	s.validating("manual", hookOf{name: "manual", policy: "Fail", timeout: 10, backend: "manual"})
	s.before = s.snapshot()
	s.hibernates()
	s.wakesUp()
	s.nodesJoin()
	s.Eventually(s.standing).Should(Equal(with(own, "manual/manual", "Ignore 3s")))
	s.Eventually(func() any { s.later(30 * time.Second); return s.standing() }).WithPolling(300 * time.Millisecond).
		Should(Equal(with(own, "manual/manual", "Fail 10s")))
	s.Expect(s.clock.ahead.Load()).To(BeNumerically(">=", 4*time.Minute))
	s.Eventually(s.changed).Should(BeEmpty())
}

func TestSelectorLessServiceWaitsAgainAfterASleep(t *testing.T) {
	s := newShoot(t)
	s.service("manual")
	s.edited("manual")
	s.validating("manual", hookOf{name: "manual", policy: "Fail", timeout: 10, backend: "manual"})
	s.flowBegins(true)
	s.call()
	s.aPassLater()
	s.gate.shut() // nobody sees the nodes go
	s.nodesGo()
	s.apiServerStops()
	s.Eventually(s.condition).Should(HavePrefix("True ShootAsleep"))
	s.flowEnds()
	s.later(6 * time.Minute)
	s.gate.fails(always, wrong["403"], calls["list of nodes"]) // nor that none is there
	s.wakesUp()
	s.nodesJoin()
	s.gate.mend()
	s.Eventually(func() any { s.nudge(); return s.standing() }).WithPolling(200 * time.Millisecond).
		Should(Equal(with(own, "manual/manual", "Ignore 3s")))
	for range 3 {
		s.aPassLater()
	}
	s.Expect(s.standing()).To(HaveKeyWithValue("manual/manual", "Ignore 3s"))
}

// interferes lets somebody else write to the Extension's status all the time, until the test ends.
func (s *theShoot) interferes() {
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan struct{})
	key := client.ObjectKeyFromObject(s.lookup())
	go func() {
		defer close(done)
		for n := 0; ctx.Err() == nil; n++ {
			ex := &extensionsv1alpha1.Extension{}
			if s.seed().Get(ctx, key, ex) != nil {
				continue
			}
			patch := client.MergeFromWithOptions(ex.DeepCopy(), client.MergeFromWithOptimisticLock{})
			ex.Status.Conditions = helper.MergeConditions(ex.Status.Conditions, otherCondition(n))
			_ = s.seed().Status().Patch(ctx, ex, patch) // the next one may succeed
		}
	}()
	s.t.Cleanup(func() { cancel(); <-done })
}

func otherCondition(n int) gardencorev1beta1.Condition {
	return gardencorev1beta1.Condition{
		Type: "Other", Status: gardencorev1beta1.ConditionTrue, Reason: "Counting", Message: fmt.Sprint(n),
		LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
	}
}

func TestConflictsOnTheSeedCostNothingButTime(t *testing.T) {
	s := newShoot(t)
	s.interferes()
	s.flowBegins(true)
	s.Expect(s.call()).To(BeNumerically("<", mayTake))
	s.Expect(s.standing()).To(Equal(open))
	s.Expect(s.recorded()).To(HaveLen(3))
	s.nodesGo()
	s.apiServerStops()
	s.flowEnds()
	s.wakesUp()
	s.nodesJoin()
	s.Eventually(s.changed).Should(BeEmpty())
	s.Eventually(s.recorded).Should(BeEmpty())
}

func TestRecordThatSomebodyElseChangedIsReadAgain(t *testing.T) {
	s := newShoot(t)
	once := make(chan struct{}, 1)
	once <- struct{}{}
	s.gate.asks(func(r request) {
		if r.resource == mutatingResource && r.verb == "list" {
			select {
			case <-once:
				s.tamper(func(state map[string]any) { state["later"] = "field" })
			default:
			}
		}
	})
	s.flowBegins(true)
	s.asked()
	s.Eventually(s.succeeded).Should(BeTrue())
	s.Expect(s.standing()).To(Equal(open))
	s.Expect(s.read("policies").Annotations).To(HaveKey(v1alpha1.OriginalsAnnotation))
}
