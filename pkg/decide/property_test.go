// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/backend"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/decide"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/record"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/scope"
)

// world is one hook with all that can happen to it: its owners, the guard, crashes, losses.
type world struct {
	t       *testing.T
	r       *rand.Rand
	seed    uint64
	log     []string
	tracked bool // the API server keeps managedFields of the object
	copies  bool // the object may be copied while open; otherwise the open timeout may be configured anew

	now     time.Time
	object  object
	truth   truth
	state   state
	memory  decide.Memory
	opens   decide.Opens
	verdict *backend.Verdict
	in      decide.Shoot
	inPass  bool // the durable record may lag behind what the guard knows
}

func newWorld(t *testing.T, seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 0))
	originals := []hook.Values{own, own, own, {Policy: fail, Timeout: 2}, {Policy: ignore, Timeout: 30}}
	w := &world{
		t: t, r: r, seed: seed, tracked: seed%3 != 0, copies: seed%3 == 1, now: now,
		object: object{uid: 1, exists: true, values: originals[r.IntN(len(originals))], owners: map[string]string{}},
		state:  state{Hooks: map[string]v1alpha1.HookRecord{}},
		in:     shoot(phase.GoingDown),
	}
	if w.tracked {
		w.object.owners = map[string]string{policy: "helm", timeout: "helm"}
	}
	w.truth.is(w.object.values)
	return w
}

func (w *world) failf(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.log {
		w.t.Log(line)
	}
	w.t.Fatalf("seed %d: %s", w.seed, fmt.Sprintf(format, args...))
}

func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

func (w *world) key() string {
	c := w.object.configuration()
	return v1alpha1.HookKey(string(c.Kind), c.Name, c.UID, hookName)
}

func (w *world) subject(s state, seen object) decide.Subject {
	c := seen.configuration()
	key := v1alpha1.HookKey(string(c.Kind), c.Name, c.UID, hookName)
	sub := decide.Subject{
		Configuration: c, ConfigurationExists: true, Scope: scope.Verdict{InScope: true}, Verdict: w.verdict,
		Annotated: seen.annotation, Memory: w.memory, Opens: w.opens,
	}
	if len(c.Hooks) > 0 {
		sub.Hook = &c.Hooks[0]
	} else {
		sub.Annotated = nil
	}
	if rec, ok := s.Hooks[key]; ok {
		sub.Record = rec.DeepCopy()
	}
	return sub
}

func (w *world) direction() v1alpha1.Direction {
	if w.in.Phase == phase.WakingUp {
		return v1alpha1.DirectionWakeUp
	}
	return v1alpha1.DirectionHibernate
}

// pass is a pass of the guard that may crash at any point and loses what it did not write then.
func (w *world) pass(crashes bool) decide.Decision {
	mem := *w.state.DeepCopy()
	w.inPass = true
	defer func() { w.inPass = false }()
	if w.in.Call {
		record.BeginCycle(&mem, w.direction(), w.now)
	}
	w.in.Now, w.in.MayOpenNew, w.in.Begun = w.now, record.MayOpenNew(&mem), time.Time{}
	if mem.Cycle != nil {
		w.in.Begun = mem.Cycle.Begun.Time
	}
	var d decide.Decision
	for range 5 {
		seen := w.object.clone()
		d = w.decide(&mem, seen)
		if d.Action == decide.None {
			break
		}
		if d.Action != decide.ReleaseIt {
			w.state = *mem.DeepCopy()
			w.recordedFirst(d, seen)
		}
		if crashes && w.r.IntN(8) == 0 {
			return w.crash("before the patch")
		}
		if crashes && w.r.IntN(8) == 0 {
			w.somebody()
		}
		accepted := w.object.apply(d, seen, w.tracked)
		w.note("  %s %v -> %v accepted=%t", d.Action, d.From, d.To, accepted)
		if accepted && d.Action == decide.OpenIt {
			w.opens = w.opens.Opened(w.now)
		}
		w.neverLost()
		if crashes && w.r.IntN(8) == 0 {
			return w.crash("after the patch")
		}
	}
	w.finish(&mem, d)
	w.state = mem
	w.neverLost()
	return d
}

func (w *world) crash(when string) decide.Decision {
	w.note("  crash %s", when)
	w.memory, w.opens = decide.Memory{}, decide.Opens{}
	return decide.Decision{}
}

func (w *world) decide(mem *state, seen object) decide.Decision {
	s := w.subject(*mem, seen)
	if s.Hook == nil && s.Record == nil {
		return decide.Decision{State: decide.Gone} // nobody asks
	}
	d := decide.Decide(w.in, s)
	w.memory = d.Memory
	if d.BackendWent {
		w.opens.Streak = 0
	}
	w.note("  %s call=%t giveUp=%t %v: %s %s record=%v", w.in.Phase, w.in.Call, w.in.GiveUp, seen.values, d.State, d.Action, d.Record)
	if s.Verdict != nil && s.Verdict.State == backend.Unknown && !w.in.Call && d.Action != decide.None && d.Action != decide.ReleaseIt {
		w.failf("%s on an unknown verdict", d.Action)
	}
	if d.State == decide.OriginalUnknown {
		w.failf("the original is not known")
	}
	if key := record.Key(v1alpha1.HookRecord{Kind: string(hook.Validating), Configuration: "cfg", UID: s.Configuration.UID, Hook: hookName}); d.Record != nil {
		mem.Hooks[key] = *d.Record
	} else {
		delete(mem.Hooks, key)
	}
	if d.State == decide.Done && !w.truth.allows(seen.values) {
		w.failf("done at %v, its owners want %v", seen.values, w.truth)
	}
	return d
}

// recordedFirst checks design R1 on what is durable when the patch is sent.
func (w *world) recordedFirst(d decide.Decision, seen object) {
	rec, ok := w.state.Hooks[w.key()]
	if !ok || rec.Original != d.Record.Original {
		w.failf("the original is not on record before it is changed")
	}
	if o := (hook.Values{Policy: rec.Original.FailurePolicy, Timeout: rec.Original.TimeoutSeconds}); !w.truth.allows(o) && seen.uid == w.object.uid {
		w.failf("recorded %v, its owners want %v", o, w.truth)
	}
}

// neverLost: a hook that stands at a value that none of its owners gave it is on record or has our annotation.
func (w *world) neverLost() {
	if !w.object.exists || w.truth.allows(w.object.values) || w.object.annotation != nil {
		return
	}
	if _, ok := w.state.Hooks[w.key()]; !ok {
		w.failf("stands at %v without record and annotation, its owners want %v", w.object.values, w.truth)
	}
}

// finish ends what the pass ends: the record of a hook that is done, and records of uids that are gone.
func (w *world) finish(mem *state, d decide.Decision) {
	for key := range mem.Hooks {
		if key != w.key() || d.State == decide.Done && w.in.Phase != phase.GoingDown {
			delete(mem.Hooks, key)
		}
	}
}

// TestTheOriginalIsNeverLost plays random lives of a hook. At the end the backend is ready for long, and everything must be back.
func TestTheOriginalIsNeverLost(t *testing.T) {
	lives := uint64(3000)
	if testing.Short() {
		lives = 300
	}
	for seed := range lives {
		w := newWorld(t, seed)
		for range 10 + w.r.IntN(50) {
			w.event()
			w.pass(true)
		}
		w.settle()
	}
}

// settle wakes the Shoot up for good.
func (w *world) settle() {
	w.note("settle")
	w.state.Cycle = nil
	openTimeout := w.in.Settings.OpenValidating
	w.in = shoot(phase.WakingUp, call)
	w.in.Settings.OpenValidating = openTimeout
	if !w.object.exists {
		w.refill()
	}
	w.verdict = &backend.Verdict{State: backend.Ready}
	var d decide.Decision
	for range 20 {
		w.now = w.now.Add(10 * time.Second)
		d = w.pass(false)
		w.in.Call = false
	}
	if _, onRecord := w.state.Hooks[w.key()]; onRecord || d.State != decide.Enforced {
		w.failf("ends as %s, on record: %t", d.State, onRecord)
	}
	if !w.truth.allows(w.object.values) || w.object.annotation != nil || w.object.ours() {
		w.failf("ends at %v with %v, annotation %v; its owners want %v", w.object.values, w.object.owners, w.object.annotation, w.truth)
	}
}
