// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/record"
)

const (
	down = v1alpha1.DirectionHibernate
	up   = v1alpha1.DirectionWakeUp
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-d)} }

func TestCycleRuns(t *testing.T) {
	for _, c := range []struct {
		name             string
		cycle            *v1alpha1.Cycle
		runs, mayOpenNew bool
	}{
		{"without a cycle nothing runs and nothing new may be opened", nil, false, false},
		{"a cycle that gardenlet began runs, and new hooks may be opened", &v1alpha1.Cycle{}, true, true},
		{"a cycle that only holds runs, and no new hook may be opened", &v1alpha1.Cycle{HoldOnly: true}, true, false},
		{"an ended cycle does not run, and no new hook may be opened", &v1alpha1.Cycle{Ended: ago(0)}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			s := &v1alpha1.GuardState{Cycle: c.cycle}
			g.Expect(record.CycleRuns(s)).To(Equal(c.runs))
			g.Expect(record.MayOpenNew(s)).To(Equal(c.mayOpenNew))
		})
	}
}

func TestBeginCycle(t *testing.T) {
	begun := metav1.NewTime(now.Add(-time.Hour))
	for _, c := range []struct {
		name      string
		cycle     *v1alpha1.Cycle
		direction v1alpha1.Direction
		want      *v1alpha1.Cycle
	}{
		{"the first call begins one", nil, down, &v1alpha1.Cycle{Direction: down, Begun: metav1.NewTime(now)}},
		{"a later call of the same hibernation goes on with it",
			&v1alpha1.Cycle{Direction: down, Begun: begun, Attempts: []string{"1"}, LetGo: true}, down,
			&v1alpha1.Cycle{Direction: down, Begun: begun, Attempts: []string{"1"}, LetGo: true}},
		{"a later call of the same wake-up goes on with it, and its deadline still counts from the first ready node",
			&v1alpha1.Cycle{Direction: up, Begun: begun, FirstReadyNode: ago(time.Minute)}, up,
			&v1alpha1.Cycle{Direction: up, Begun: begun, FirstReadyNode: ago(time.Minute)}},
		{"a hibernation that was toggled back and on again forgets the ready node in between",
			&v1alpha1.Cycle{Direction: down, Begun: begun, FirstReadyNode: ago(time.Minute)}, down, &v1alpha1.Cycle{Direction: down, Begun: begun}},
		{"a call of the other direction begins a new one",
			&v1alpha1.Cycle{Direction: down, Begun: begun, LetGo: true, Attempts: []string{"1"}, FirstHeldBack: ago(0)}, up,
			&v1alpha1.Cycle{Direction: up, Begun: metav1.NewTime(now)}},
		{"an ended one of the same direction is followed by a new one", &v1alpha1.Cycle{Direction: up, Begun: begun, Ended: ago(0)}, up,
			&v1alpha1.Cycle{Direction: up, Begun: metav1.NewTime(now)}},
		{"one that only holds is followed by one that opens", &v1alpha1.Cycle{Direction: down, Begun: begun, HoldOnly: true}, down,
			&v1alpha1.Cycle{Direction: down, Begun: metav1.NewTime(now)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &v1alpha1.GuardState{Cycle: c.cycle}
			record.BeginCycle(s, c.direction, now)
			NewWithT(t).Expect(s.Cycle).To(Equal(c.want))
		})
	}
}

func TestBeginCycleWithHooks(t *testing.T) {
	original := v1alpha1.Original{FailurePolicy: admissionregistrationv1.Fail, TimeoutSeconds: 10}
	givenBack := v1alpha1.HookRecord{
		Original: original, Opened: ago(0), Returned: ago(0), ReturnedBy: v1alpha1.ReturnedByGuard, Reopened: 3,
		Verdict: "NotReady", VerdictReason: "StaleEndpoints", Why: "why", Gone: true,
	}
	stillOpen := v1alpha1.HookRecord{Original: original, Opened: ago(0), Verdict: "Ready", VerdictReason: "EndpointsReady"}
	openAgain := stillOpen
	openAgain.Reopened = 3
	for _, c := range []struct {
		name         string
		direction    v1alpha1.Direction
		hook         v1alpha1.HookRecord
		want, reason string
		reopened     int
	}{
		{"a hibernation judges anew what was given back", down, givenBack, "", "", 0},
		{"a hibernation keeps what was said of a hook before it was opened, if that was never given back", down, stillOpen, "Ready", "EndpointsReady", 0},
		{"a wake-up needs what was said before the sleep", up, givenBack, "NotReady", "StaleEndpoints", 0},
		{"a wake-up needs it for what is open, too", up, stillOpen, "Ready", "EndpointsReady", 0},
		{"a wake-up knows what was found open again", up, openAgain, "Ready", "EndpointsReady", 1},
		{"a hibernation does, too", down, openAgain, "Ready", "EndpointsReady", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			s := &v1alpha1.GuardState{Hooks: map[string]v1alpha1.HookRecord{"a": c.hook}}
			record.BeginCycle(s, c.direction, now)
			got := s.Hooks["a"]
			g.Expect([]string{got.Verdict, got.VerdictReason}).To(Equal([]string{c.want, c.reason}))
			if c.direction == up && c.hook.Returned == nil {
				g.Expect(got.Opened).To(Equal(c.hook.Opened), "what is open has been open since then")
			} else {
				g.Expect(got.Opened).To(BeNil())
			}
			g.Expect(got.Returned).To(BeNil())
			g.Expect(got.ReturnedBy).To(BeEmpty())
			g.Expect(got.Reopened).To(Equal(c.reopened))
			g.Expect(got.Original).To(Equal(original))
			g.Expect(got.Gone).To(Equal(c.hook.Gone))

			before := got
			before.Returned, before.Reopened = ago(0), 2
			s.Hooks["a"] = before
			record.BeginCycle(s, c.direction, now)
			g.Expect(s.Hooks["a"]).To(Equal(before), "a later call of the same cycle takes nothing back")
		})
	}
}

func TestEndCycle(t *testing.T) {
	g := NewWithT(t)
	s := &v1alpha1.GuardState{}
	record.EndCycle(s, now)
	g.Expect(s.Cycle).To(BeNil())

	s.Cycle = &v1alpha1.Cycle{Direction: up}
	record.EndCycle(s, now)
	g.Expect(s.Cycle).To(BeNil(), "with nothing on record it is forgotten")

	s.Cycle, s.Hooks = &v1alpha1.Cycle{Direction: up, FirstReadyNode: ago(time.Hour)}, map[string]v1alpha1.HookRecord{"a": {}}
	record.EndCycle(s, now)
	g.Expect(s.Cycle.Ended.Time).To(Equal(now))
	g.Expect(s.Cycle.FirstReadyNode).NotTo(BeNil(), "the deadline is still past")
	g.Expect(s.Hooks).To(HaveKey("a"))
	record.EndCycle(s, now.Add(time.Hour))
	g.Expect(s.Cycle.Ended.Time).To(Equal(now), "it ends once")
	clear(s.Hooks)
	record.EndCycle(s, now)
	g.Expect(s.Cycle).To(BeNil(), "an ended one is forgotten with its last hook")
}

func TestHoldOnly(t *testing.T) {
	g := NewWithT(t)
	s := &v1alpha1.GuardState{Hooks: map[string]v1alpha1.HookRecord{"a": {Opened: ago(0)}}}
	record.HoldOnly(s, up, now)
	g.Expect(s.Cycle).To(Equal(&v1alpha1.Cycle{Direction: up, Begun: metav1.NewTime(now), HoldOnly: true}))
	g.Expect(s.Hooks["a"].Opened).NotTo(BeNil())
}

func TestDeadlines(t *testing.T) {
	const deadline = 30 * time.Minute
	ready := func(d time.Duration) *v1alpha1.Cycle { return &v1alpha1.Cycle{Direction: up, FirstReadyNode: ago(d)} }
	begun := func(direction v1alpha1.Direction, d time.Duration) *v1alpha1.Cycle {
		return &v1alpha1.Cycle{Direction: direction, Begun: *ago(d)}
	}
	for _, c := range []struct {
		name         string
		cycle        *v1alpha1.Cycle
		wakeUp, down bool
	}{
		{"without a cycle no deadline passes", nil, false, false},
		{"a wake-up without a ready node has no deadline", begun(up, 24*time.Hour), false, false},
		{"a moment before the deadline of a wake-up", ready(deadline - 1), false, false},
		{"at the deadline of a wake-up", ready(deadline), true, false},
		{"past the deadline of a wake-up that has ended", &v1alpha1.Cycle{Direction: up, FirstReadyNode: ago(deadline), Ended: ago(0)}, true, false},
		{"a moment before the deadline of a hibernation", begun(down, deadline-1), false, false},
		{"at the deadline of a hibernation", begun(down, deadline), false, true},
		{"a wake-up that began long ago is no hibernation", begun(up, deadline), false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			s := &v1alpha1.GuardState{Cycle: c.cycle}
			g.Expect(record.DeadlinePassed(s, deadline, now)).To(Equal(c.wakeUp))
			g.Expect(record.GoingDownOverdue(s, deadline, now)).To(Equal(c.down))
		})
	}
}

func TestSlept(t *testing.T) {
	g := NewWithT(t)
	s := &v1alpha1.GuardState{}
	record.Slept(s)
	g.Expect(s.Cycle).To(BeNil())
	s = &v1alpha1.GuardState{
		Cycle: &v1alpha1.Cycle{Direction: up, FirstReadyNode: ago(time.Hour), Ended: ago(0)}, Hooks: map[string]v1alpha1.HookRecord{"a": {}},
	}
	record.Slept(s)
	g.Expect(record.DeadlinePassed(s, time.Minute, now)).To(BeFalse(), "the deadline of a wake-up before the sleep does not count after it")
	g.Expect(s.Hooks).To(HaveKey("a"))
}

func TestHoldBack(t *testing.T) {
	type call struct {
		attempt string
		at      time.Duration
		held    bool
	}
	const m = time.Minute
	for _, c := range []struct {
		name  string
		calls []call
	}{
		{"three attempts within five minutes are held back, and the fourth as well",
			[]call{{"1", 0, true}, {"2", m, true}, {"3", 2 * m, true}, {"4", 5*m - 1, true}}},
		{"the fourth attempt after five minutes is let go", []call{{"1", 0, true}, {"2", m, true}, {"3", 2 * m, true}, {"4", 5 * m, false}}},
		{"a fifth attempt is let go when the fourth came too early",
			[]call{{"1", 0, true}, {"2", m, true}, {"3", 2 * m, true}, {"4", 3 * m, true}, {"5", 5 * m, false}}},
		{"the third attempt is held back also after five minutes", []call{{"1", 0, true}, {"2", 5 * m, true}, {"3", 10 * m, true}}},
		{"retries of one attempt do not count as more", []call{{"1", 0, true}, {"1", m, true}, {"1", 2 * m, true}, {"1", 10 * m, true}}},
		{"a retry of the third attempt is held back like it", []call{{"1", 0, true}, {"2", m, true}, {"3", 2 * m, true}, {"3", 10 * m, true}}},
		{"a moment before fifteen minutes a single attempt is held back", []call{{"1", 0, true}, {"1", 15*m - 1, true}}},
		{"after fifteen minutes a single attempt is let go", []call{{"1", 0, true}, {"1", 15 * m, false}}},
		{"the first attempt is held back however late in the cycle", []call{{"1", 24 * time.Hour, true}}},
		{"nor is a retry of an attempt that was held back", []call{{"1", 0, true}, {"2", m, true}, {"3", 2 * m, true}, {"4", 5 * m, false}, {"3", 6 * m, false}}},
		{"what was let go once is not held back again", []call{{"1", 0, true}, {"1", 15 * m, false}, {"2", 15 * m, false}, {"3", 16 * m, false}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			cycle := &v1alpha1.Cycle{Direction: down, Begun: metav1.NewTime(now)}
			for _, call := range c.calls {
				g.Expect(record.HoldBack(cycle, call.attempt, now.Add(call.at))).To(Equal(call.held), "attempt %s after %s", call.attempt, call.at)
				g.Expect(cycle.LetGo).To(Equal(!call.held))
			}
			g.Expect(cycle.FirstHeldBack.Time).To(Equal(now.Add(c.calls[0].at)))
		})
	}
	g := NewWithT(t)
	cycle := &v1alpha1.Cycle{}
	record.HoldBack(cycle, "1", now)
	record.HoldBack(cycle, "1", now)
	record.HoldBack(cycle, "2", now)
	g.Expect(cycle.Attempts).To(Equal([]string{"1", "2"}))
}

func TestNothingHeldBack(t *testing.T) {
	g := NewWithT(t)
	cycle := &v1alpha1.Cycle{Direction: down, Begun: metav1.NewTime(now)}
	g.Expect(record.HoldBack(cycle, "1", now)).To(BeTrue())
	record.NothingHeldBack(cycle)
	g.Expect(cycle).To(Equal(&v1alpha1.Cycle{Direction: down, Begun: metav1.NewTime(now)}))
	g.Expect(record.HoldBack(cycle, "2", now.Add(16*time.Minute))).To(BeTrue(), "trouble that comes later has its own time")

	cycle.LetGo, cycle.MayNotWake = true, "cfg/hook"
	record.NothingHeldBack(cycle)
	g.Expect(cycle.LetGo).To(BeFalse())
	g.Expect(cycle.MayNotWake).To(BeEmpty())
}

func TestForgetFuture(t *testing.T) {
	g := NewWithT(t)
	ahead, before := now.Add(time.Hour), ago(time.Hour)
	state := func(at *metav1.Time) *v1alpha1.GuardState {
		return &v1alpha1.GuardState{
			Cycle: &v1alpha1.Cycle{Begun: *at, FirstReadyNode: at.DeepCopy(), FirstHeldBack: at.DeepCopy(), Ended: at.DeepCopy()},
			Hooks: map[string]v1alpha1.HookRecord{"a": {Opened: at.DeepCopy(), Returned: at.DeepCopy()}, "b": {}},
		}
	}
	s := state(&metav1.Time{Time: ahead})
	record.ForgetFuture(s, now)
	g.Expect(s).To(Equal(state(&metav1.Time{Time: now})), "what a clock that was ahead wrote counts from now")

	s = state(before)
	record.ForgetFuture(s, now)
	g.Expect(s).To(Equal(state(before)))

	s = &v1alpha1.GuardState{}
	record.ForgetFuture(s, now)
	g.Expect(s).To(Equal(&v1alpha1.GuardState{}))
}

func TestNew(t *testing.T) {
	g := NewWithT(t)
	c := hook.Configuration{Kind: hook.Mutating, Name: "cfg", UID: "uid-1", ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "helm", Operation: "Apply", FieldsV1: metav1.NewFieldsV1(`{"f:webhooks":{"k:{\"name\":\"a.example.com\"}":{"f:failurePolicy":{}}}}`)},
	}}
	h := hook.Hook{
		Name: "a.example.com", Values: hook.Values{Policy: admissionregistrationv1.Fail, Timeout: 7},
		Service: &hook.Service{Namespace: "hooks", Name: "hook", Port: 8443, Path: "/p"},
	}
	r := record.New(c, h)
	g.Expect(r).To(Equal(v1alpha1.HookRecord{
		Kind: "MutatingWebhookConfiguration", Configuration: "cfg", UID: "uid-1", Hook: "a.example.com",
		Backend:      &v1alpha1.Backend{Namespace: "hooks", Name: "hook", Port: 8443},
		Original:     v1alpha1.Original{FailurePolicy: admissionregistrationv1.Fail, TimeoutSeconds: 7},
		FormerOwners: []v1alpha1.FieldOwner{{Manager: "helm", Operation: "Apply", Fields: []string{"failurePolicy"}}},
	}))
	g.Expect(record.Key(r)).To(Equal(c.Key(h)))
	h.Service = nil
	g.Expect(record.New(c, h).Backend).To(BeNil())
}
