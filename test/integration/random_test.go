//go:build e2e

// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"flag"
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

var (
	firstSeed = flag.Int64("random.seed", 1, "seed of the first random story")
	seeds     = flag.Int64("random.stories", 3, "number of random stories")
)

// TestRandomStories plays hibernations and wake-ups in which anything may happen in between. A Shoot never sleeps with a hook
// closed, wakes up with all of them open, and each gets its own values back.
func TestRandomStories(t *testing.T) {
	t.Parallel()
	for seed := *firstSeed; seed < *firstSeed+*seeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := &randomStory{theShoot: newShoot(t), Rand: rand.New(rand.NewSource(seed)), nodes: true, serves: true}
			for range 2 {
				if s.sleeps() {
					s.wakes()
				}
				s.gate.mend()
				s.eventually(s.standing, own)
			}
			s.Eventually(s.leftovers).WithTimeout(patience).Should(BeEmpty())
			s.Eventually(s.condition).Should(HavePrefix("True WebhooksEnforced"))
		})
	}
}

// patience is longer than the longest back-off.
const patience = time.Minute

// randomStory is a story whose course is drawn.
type randomStory struct {
	*theShoot
	*rand.Rand

	nodes, serves bool // whether there is a node, and a pod of the backend
	wiped         bool // the annotation was removed, so that the record may not be lost, too
}

func (s *randomStory) oneIn(n int) bool { return s.Intn(n) == 0 }

func (s *randomStory) eventually(actual func() map[string]string, wanted map[string]string) {
	s.t.Helper()
	s.Eventually(func() any { s.nudge(); return actual() }).WithTimeout(patience).WithPolling(500 * time.Millisecond).Should(Equal(wanted))
}

// called is a call by the movable clock, until it succeeds.
func (s *randomStory) called() {
	s.t.Helper()
	s.asksNow()
	s.Eventually(s.succeeded).WithTimeout(patience).Should(BeTrue())
}

// sleeps plays a hibernation. It returns false when it was cancelled.
func (s *randomStory) sleeps() bool {
	s.t.Log("goes to sleep")
	s.flowBegins(true)
	s.called()
	for s.oneIn(3) {
		s.troubles(4)
		if s.oneIn(3) {
			s.leaves()
		}
		s.flowFails()
		s.troubles(1)
		hibernate := !s.oneIn(3)
		s.t.Log("flow again, hibernate:", hibernate)
		s.flowBegins(hibernate)
		s.called()
		if !hibernate {
			s.returns()
			s.flowEnds()
			return false
		}
	}
	s.troubles(4)
	s.leaves()
	s.gate.mend()
	s.eventually(s.standing, open)
	s.apiServerStops()
	s.Eventually(s.condition).Should(HavePrefix("True ShootAsleep"))
	s.flowEnds()
	return true
}

// wakes plays a wake-up.
func (s *randomStory) wakes() {
	slept := time.Duration(s.Intn(100)) * time.Hour
	s.t.Log("wakes up after", slept)
	s.clock.ahead.Add(int64(slept))
	if s.oneIn(4) && !s.wiped {
		s.t.Log("without its record")
		s.loseRecord()
	}
	s.flowBegins(false)
	s.apiServerStarts()
	s.called()
	s.Expect(s.standing()).To(Equal(open))
	s.troubles(3)
	s.joins()
	s.troubles(4)
	if s.oneIn(3) {
		s.t.Log("flow again")
		s.flowFails()
		s.flowBegins(false)
		s.called()
		s.troubles(3)
	}
	s.returns()
	s.flowEnds()
}

func (s *randomStory) joins() {
	if !s.nodes {
		s.nodeJoins()
		s.nodes = true
	}
}

// returns makes the backend answer, on a node.
func (s *randomStory) returns() {
	s.joins()
	if !s.serves {
		s.comesBack("backend")
		s.serves = true
	}
}

func (s *randomStory) leaves() {
	if s.nodes {
		s.nodesGo()
		s.nodes, s.serves = false, false
	}
}

// troubles lets up to n things happen.
func (s *randomStory) troubles(n int) {
	for range s.Intn(n + 1) {
		trouble := troubles[s.Intn(len(troubles))]
		s.t.Log(trouble.name)
		trouble.happens(s)
	}
}

var troubles = []struct {
	name    string
	happens func(*randomStory)
}{
	{"the controller is restarted", func(s *randomStory) { s.restartController() }},
	{"time passes", func(s *randomStory) { s.later(time.Duration(s.Intn(40)) * time.Minute) }},
	{"the loop looks", func(s *randomStory) { s.aPassLater() }},
	{"connections are cut", func(s *randomStory) { s.gate.cut() }},
	{"requests fail", func(s *randomStory) {
		ways := []string{"unreachable", "403", "409", "422", "429", "500"}
		s.gate.fails(1+s.Intn(4), wrong[ways[s.Intn(len(ways))]], func(request) bool { return true })
	}},
	{"the backend goes", func(s *randomStory) {
		if s.serves {
			s.goes("backend")
			s.serves = false
		}
	}},
	{"the backend comes back", func(s *randomStory) {
		if s.nodes {
			s.returns()
		}
	}},
	{"the owner closes a hook", func(s *randomStory) { s.edit("policies", closes) }},
	{"the owner closes a hook, and once more after a pass", func(s *randomStory) {
		s.edit("policies", closes)
		s.aPassLater()
		s.edit("policies", closes)
	}},
	{"the configuration is made anew", func(s *randomStory) {
		s.Expect(s.shoot().Delete(s.ctx, s.read("policies"))).To(Succeed())
		s.validating("policies", policies...)
	}},
	{"the configuration is restored as it stands", func(s *randomStory) {
		o := s.read("policies")
		if _, annotated := o.Annotations[v1alpha1.OriginalsAnnotation]; !annotated && *o.Webhooks[0].FailurePolicy != "Fail" {
			return // nothing on it would tell
		}
		s.Expect(s.shoot().Delete(s.ctx, o)).To(Succeed())
		o.UID, o.ResourceVersion, o.ManagedFields = "", "", nil
		s.create(o)
		s.aPassLater()
	}},
	{"the hooks change places", func(s *randomStory) {
		s.edit("policies", func(o *admissionregistrationv1.ValidatingWebhookConfiguration) { slices.Reverse(o.Webhooks) })
	}},
	{"the annotation is removed", func(s *randomStory) {
		s.wiped = true
		s.edit("policies", func(o *admissionregistrationv1.ValidatingWebhookConfiguration) {
			delete(o.Annotations, v1alpha1.OriginalsAnnotation)
		})
	}},
	{"managedFields are reset", func(s *randomStory) {
		s.edit("policies", func(o *admissionregistrationv1.ValidatingWebhookConfiguration) {
			o.ManagedFields = []metav1.ManagedFieldsEntry{{}}
		})
	}},
	{"the hooks are removed and made anew", func(s *randomStory) {
		s.edit("policies", func(o *admissionregistrationv1.ValidatingWebhookConfiguration) { o.Webhooks = nil })
		if s.oneIn(2) {
			s.aPassLater()
		}
		hooks := s.newValidating("policies", policies...).Webhooks
		s.edit("policies", func(o *admissionregistrationv1.ValidatingWebhookConfiguration) { o.Webhooks = hooks })
	}},
}

// policies are the hooks of the configuration of that name.
var policies = []hookOf{{name: "strict", policy: "Fail", timeout: 10}, {name: "slow", policy: "Ignore", timeout: 20}}

// closes gives the strict hook its own values.
func closes(o *admissionregistrationv1.ValidatingWebhookConfiguration) {
	for i := range o.Webhooks {
		if o.Webhooks[i].Name == hookName("strict") {
			o.Webhooks[i].FailurePolicy, o.Webhooks[i].TimeoutSeconds = ptr.To(admissionregistrationv1.Fail), ptr.To[int32](10)
		}
	}
}
