// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package cycle_test plays whole sleeps and wake-ups of a Shoot with real Kyverno on real control planes.
package cycle_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

// patience bounds each wait for something that takes seconds.
const patience = 90 * time.Second

// original is how a hook stands while the Shoot is awake.
type original struct {
	policy  string
	timeout int32
}

// Hooks of Kyverno, and the one that is not, which stand in the way of sleeping or waking. All others have rules on
// Kyverno's own API groups only.
var (
	kyvernoHooks = map[bench.HookID]original{
		{Kind: bench.KindValidating, Configuration: "kyverno-resource-validating-webhook-cfg", Hook: "validate.kyverno.svc-fail"}: {"Fail", 10},
		{Kind: bench.KindMutating, Configuration: "kyverno-verify-mutating-webhook-cfg", Hook: "monitor-webhooks.kyverno.svc"}:    {"Ignore", 10},
	}
	houseHook = bench.HookID{Kind: bench.KindValidating, Configuration: "in-house", Hook: "in-house.bench.example.com"}
	guarded   = func() map[bench.HookID]original {
		all := map[bench.HookID]original{houseHook: {"Fail", 10}}
		for id, o := range kyvernoHooks {
			all[id] = o
		}
		return all
	}()
)

// stage is the bench that the cycles share. Each leaves the Shoot awake, as it found it.
type stage struct {
	bench     *bench.Bench
	gardenlet *bench.Gardenlet
	house     *bench.Webhook
	witness   *bench.Witness
	extension *extensionLog

	mu     sync.Mutex
	onStep func(bench.Step)
}

func newStage(t *testing.T, ctx context.Context) *stage {
	g := NewWithT(t)
	logf.SetLogger(logr.Discard())
	s := &stage{}
	var err error
	s.bench, err = bench.New(ctx, bench.Options{Log: testr.New(t), Kyverno: true})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(s.bench.Close()).To(Succeed()) })
	s.gardenlet = bench.NewGardenlet(s.bench, bench.GardenletOptions{Extension: true, OnStep: s.step})
	t.Cleanup(s.gardenlet.Close)
	g.Expect(s.bench.Kyverno.RequireLabel(ctx, "require-team", "team", metav1.NamespaceDefault)).To(Succeed())
	g.Expect(s.bench.Kyverno.RefuseAnnotation(ctx, "all-kinds", "forbidden")).To(Succeed())
	s.house, err = s.bench.InstallWebhook(ctx, bench.WebhookOptions{
		Name: "in-house", Answer: refuseUnlucky,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
		}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	s.witness, err = s.bench.Witness(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(s.witness.Close)
	s.extension = watchExtension(t, s.bench)
	return s
}

// refuseUnlucky refuses pods named unlucky.
func refuseUnlucky(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	if r.Name == "unlucky" {
		return bench.Deny("no luck")(r)
	}
	return bench.Allow(r)
}

func (s *stage) step(step bench.Step) {
	s.mu.Lock()
	told := s.onStep
	s.mu.Unlock()
	if told != nil {
		told(step)
	}
}

func TestCycles(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	s := newStage(t, ctx)
	var reactions []time.Duration
	for _, c := range []struct {
		name string
		play func(*cycle)
	}{
		{"a Shoot falls asleep and wakes up, and nothing of its policies is lost", playPlain},
		{"it does so although the controller is killed in every phase", playKilled},
		{"it does so although the leader of two controllers is killed in the middle of waking", playFailover},
	} {
		passed := t.Run(c.name, func(t *testing.T) {
			cycle := s.begin(t, ctx)
			c.play(cycle)
			reactions = append(reactions, cycle.reaction())
		})
		if !passed {
			return // the Shoot is not as the next cycle expects it
		}
	}
	if len(reactions) == 0 {
		return // none was selected
	}
	slices.Sort(reactions)
	t.Logf("from the end of Kyverno's last process to its last hook at Ignore: median of %d cycles %s, all %s",
		len(reactions), reactions[len(reactions)/2], reactions)
}

func playPlain(c *cycle) {
	c.start(bench.ControllerOptions{})
	c.hibernate()
	c.expectAsleep()
	c.wakeUp()
	c.expectAwake()
}

func playKilled(c *cycle) {
	controller := c.start(bench.ControllerOptions{})
	c.after(bench.StepWaitHibernatedExtension, func() { c.crash(controller, "after the Extension was reconciled") })
	evicted := c.onEviction(bench.KyvernoNamespace, func() { c.crash(controller, "while Kyverno is stopped") })
	c.hibernate()
	c.Expect(<-evicted).To(Succeed())
	c.restarted()

	c.crash(controller, "asleep")
	c.restarted()
	c.expectAsleep()

	c.after(bench.StepWaitKubeAPIServer, func() { c.crash(controller, "before the lifecycle call of the wake-up") })
	c.after(bench.StepWaitWorkers, func() { c.crash(controller, "while all hooks are open") })
	c.wakeUpFlow()
	c.restarted()
	for _, id := range sortedIDs(guarded) {
		c.Expect(c.witness.At(id, c.crashes["while all hooks are open"])).To(c.beOpen(id), id.String())
	}

	_, err := c.extension.await(c.within(patience), c.crashes["while all hooks are open"], "stabilizing", func(l look) bool { return l.has("Stabilizing") })
	c.Expect(err).NotTo(HaveOccurred())
	c.crash(controller, "while backends stabilize")
	c.Expect(c.witness.Now(houseHook)).To(c.beOpen(houseHook))
	c.restarted()
	c.awaitRestored()
	c.Expect(c.crashes).To(HaveLen(6))
	c.expectAwake()
}

func playFailover(c *cycle) {
	leader := c.start(bench.ControllerOptions{LeaderElection: true})
	holder := c.awaitLeader("")
	c.start(bench.ControllerOptions{LeaderElection: true})
	c.hibernate()
	c.expectAsleep()
	c.after(bench.StepWaitWorkers, func() {
		c.kill(leader, "in the middle of waking")
	})
	c.wakeUpFlow()
	c.Expect(c.crashes).To(HaveLen(1))
	for _, id := range sortedIDs(guarded) {
		c.Expect(c.witness.At(id, c.crashes["in the middle of waking"])).To(c.beOpen(id), id.String())
	}
	c.awaitLeader(holder)
	c.awaitRestored()
	c.expectAwake()
}

// pod is one that all policies admit, but for what change does to it.
func pod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "good", Labels: map[string]string{"team": "a"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}},
	}
	change(p)
	return p
}
