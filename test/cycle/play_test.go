// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package cycle_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

// cycle is one sleep and one wake-up with all that is seen of it.
type cycle struct {
	*stage
	*WithT
	t   *testing.T
	ctx context.Context

	begun       time.Time
	before      bench.Snapshot
	controllers []*bench.Controller
	crashing    sync.Mutex // held while a killed controller is started again
	background  sync.WaitGroup

	mu          sync.Mutex
	then        map[string]func()
	sleep, wake map[string]bench.Step // ended steps by name
	crashes     map[string]time.Time
	crashErrors []error // under crashing
}

// begin expects the Shoot awake and nothing open.
func (s *stage) begin(t *testing.T, ctx context.Context) *cycle {
	c := &cycle{
		stage: s, WithT: NewWithT(t), t: t, ctx: ctx, begun: time.Now(),
		then: map[string]func(){}, sleep: map[string]bench.Step{}, wake: map[string]bench.Step{}, crashes: map[string]time.Time{},
	}
	t.Cleanup(func() {
		c.background.Wait()
		c.crashing.Lock()
		for _, controller := range c.controllers {
			controller.Stop()
		}
	})
	return c
}

// start starts a controller for this cycle; with the first one the Shoot is reconciled.
func (c *cycle) start(o bench.ControllerOptions) *bench.Controller {
	controller, err := c.bench.StartController(c.ctx, o)
	c.Expect(err).NotTo(HaveOccurred())
	c.controllers = append(c.controllers, controller)
	if len(c.controllers) > 1 {
		return controller
	}
	begin := time.Now()
	c.flow("reconcile", map[string]bench.Step{}, c.gardenlet.Reconcile)
	_, err = c.extension.await(c.within(patience), begin, "enforced", look.finished)
	c.Expect(err).NotTo(HaveOccurred())
	c.before, err = c.bench.Snapshot(c.ctx)
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(c.before.Leftovers()).To(BeEmpty())
	for id, o := range guarded {
		c.Expect(c.witness.Now(id)).To(c.beAt(o), id.String())
	}
	c.expectNoConnection()
	c.begun = time.Now()
	return controller
}

func (c *cycle) within(limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(c.ctx, limit)
	c.t.Cleanup(cancel)
	return ctx
}

// flow runs a flow and keeps its steps.
func (c *cycle) flow(name string, steps map[string]bench.Step, run func(context.Context) error) {
	c.stage.mu.Lock()
	c.stage.onStep = func(step bench.Step) {
		if step.Ended.IsZero() {
			return
		}
		c.mu.Lock()
		steps[step.Name] = step
		then := c.then[step.Name]
		delete(c.then, step.Name)
		c.mu.Unlock()
		if then != nil {
			then()
		}
	}
	c.stage.mu.Unlock()
	begin := time.Now()
	c.Expect(run(c.within(2*time.Minute))).To(Succeed(), name)
	c.t.Logf("%s took %s", name, time.Since(begin).Round(100*time.Millisecond))
}

// after does something when a step of the next flow has ended; the flow waits for it.
func (c *cycle) after(step string, do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.then[step] = do
}

func (c *cycle) hibernate() { c.flow("hibernation", c.sleep, c.gardenlet.Hibernate) }

func (c *cycle) wakeUpFlow() { c.flow("wake-up", c.wake, c.gardenlet.WakeUp) }

func (c *cycle) wakeUp() {
	c.wakeUpFlow()
	c.awaitRestored()
}

// awaitRestored waits until all hooks are at their originals and the Extension says that all is done.
func (c *cycle) awaitRestored() {
	begin := c.wake[bench.StepDeployKubeAPIServer].Begun
	c.Expect(c.witness.Await(c.within(patience), func() bool {
		for id, o := range guarded {
			if s := c.witness.Now(id); s.FailurePolicy != o.policy || s.TimeoutSeconds != o.timeout {
				return false
			}
		}
		return true
	})).To(Succeed())
	for _, id := range sortedIDs(guarded) {
		c.t.Logf("%s at its original %s after the wake-up began", id, c.witness.Now(id).At.Sub(begin).Round(100*time.Millisecond))
	}
	_, err := c.extension.await(c.within(patience), c.wake[bench.StepWaitExtension].Ended, "finished", look.finished)
	c.Expect(err).NotTo(HaveOccurred())
	c.t.Logf("finished %s after the wake-up began", time.Since(begin).Round(100*time.Millisecond))
}

// kill ends a controller as SIGKILL does.
func (c *cycle) kill(controller *bench.Controller, when string) {
	controller.Kill()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.crashes[when] = time.Now()
	c.t.Logf("controller killed %s", when)
}

// crash kills a controller and has it started again at once, without waiting for it. One that is not up yet is waited for.
func (c *cycle) crash(controller *bench.Controller, when string) {
	c.crashing.Lock()
	c.kill(controller, when)
	killed := time.Now()
	go func() {
		defer c.crashing.Unlock()
		err := controller.Start(c.ctx)
		c.t.Logf("controller ready again %s later", time.Since(killed).Round(time.Millisecond))
		if err != nil {
			c.crashErrors = append(c.crashErrors, fmt.Errorf("killed %s: %w", when, err))
		}
	}()
}

// restarted waits until the controller runs again.
func (c *cycle) restarted() {
	c.crashing.Lock()
	defer c.crashing.Unlock()
	c.Expect(c.crashErrors).To(BeEmpty())
}

// onEviction does something once a pod in the namespace is to end. The result is told when it has been done.
func (c *cycle) onEviction(namespace string, do func()) <-chan error {
	done := make(chan error, 1)
	admin, err := client.NewWithWatch(c.bench.Shoot.Config(), client.Options{})
	c.Expect(err).NotTo(HaveOccurred())
	pods, err := admin.Watch(c.within(patience), &corev1.PodList{}, client.InNamespace(namespace))
	c.Expect(err).NotTo(HaveOccurred())
	c.background.Go(func() {
		defer pods.Stop()
		for event := range pods.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && pod.DeletionTimestamp != nil && pod.Spec.NodeName != "" {
				do()
				done <- nil
				return
			}
		}
		done <- fmt.Errorf("no pod in namespace %s was to end", namespace)
	})
	return done
}

// awaitLeader waits for a leader other than the one given, and returns its identity.
func (c *cycle) awaitLeader(before string) string {
	holder := ""
	begin := time.Now()
	c.Eventually(func() (string, error) {
		lease := &coordinationv1.Lease{}
		err := c.bench.Seed.Client().Get(c.ctx, leaderLease, lease)
		holder = ptr.Deref(lease.Spec.HolderIdentity, "")
		return holder, err
	}).WithTimeout(patience).WithPolling(100 * time.Millisecond).ShouldNot(Or(BeEmpty(), Equal(before)))
	c.t.Logf("new leader after %s", time.Since(begin).Round(100*time.Millisecond))
	return holder
}

var leaderLease = client.ObjectKey{
	Namespace: "extension-shoot-hibernation-guard", Name: "gardener-extension-shoot-hibernation-guard-leader-election",
}

func sortedIDs(hooks map[bench.HookID]original) []bench.HookID {
	return slices.SortedFunc(maps.Keys(hooks), func(a, b bench.HookID) int { return strings.Compare(a.String(), b.String()) })
}
