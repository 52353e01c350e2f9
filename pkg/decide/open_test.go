// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/backend"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/decide"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/scope"
)

func TestGoingDownCall(t *testing.T) {
	in := shoot(phase.GoingDown, call)
	check(t, []decision{
		{"the call opens a hook that nobody has judged", in, subject(own), opensIt},
		{"the call opens a hook whose backend is ready", in, subject(own, ready), opensIt},
		{"the call opens a hook whose backend is not known", in, subject(own, unknown), opensIt},
		{"the call begins without a cycle on record", shoot(phase.GoingDown, call, withoutCycle), subject(own), opensIt},
		{"a hook that is as open as we would make it is left alone", in, subject(opened), leftAlone},
		{"a slow hook that is Ignore gets the open timeout", in, subject(hook.Values{Policy: ignore, Timeout: 30}), opensIt},
		{"a timeout shorter than the open one stays", in, subject(hook.Values{Policy: fail, Timeout: 2}),
			expectation{decide.Open, decide.OpenIt, hook.Values{Policy: ignore, Timeout: 2}, true}},
		{"a hook of a mutating configuration gets the shorter timeout", in, subject(own, func(s *decide.Subject) { s.Hook.Mutating = true }),
			expectation{decide.Open, decide.OpenIt, hook.Values{Policy: ignore, Timeout: 1}, true}},
		{"the call opens a hook that was recorded but never opened: we crashed in between", in,
			subject(own, onRecord(neverOpened, judged(backend.Ready))), opensIt},
		{"a second call does not fight a live owner that reverted us", in, subject(own, onRecord(judged(backend.Ready))), reverted},
		{"a second call opens a reverted hook whose backend was broken", in, subject(own, onRecord(judged(backend.NotReady))), opensIt},
		{"a second call opens a reverted hook whose backend could not be judged", in, subject(own, onRecord(judged(backend.Unknown))), opensIt},
		{"a second call opens a reverted hook whose backend was never judged", in, subject(own, onRecord()), opensIt},
		{"a second call opens a reverted hook whose backend went", in, subject(own, onRecord(judged(backend.Ready)), notReady), opensIt},
		{"a hook that the deadline gave back is opened by a later call", in,
			subject(own, onRecord(judged(backend.Ready), returned(0)), readyFor(stabilization)), opensIt},
		{"Report opens nothing", shoot(phase.GoingDown, call, reportMode), subject(own), leftAlone},
		{"a hook out of scope is left", in, subject(own, outOfScope), expectation{state: decide.Left}},
	})
}

func TestGoingDownLoop(t *testing.T) {
	in := shoot(phase.GoingDown)
	check(t, []decision{
		{"a backend that is not ready opens a new hook in a begun cycle", in, subject(own, notReady), opensIt},
		{"a new hook stays without a begun cycle", shoot(phase.GoingDown, withoutCycle), subject(own, notReady), leftAlone},
		{"a ready backend opens nothing", in, subject(own, ready), leftAlone},
		{"no verdict opens nothing", in, subject(own), leftAlone},
		{"an open hook is held while its backend is not ready", in, subject(opened, opens, onRecord(), notReady), heldOpen},
		{"an open hook is not given back while its backend is still ready", in, subject(opened, opens, onRecord(), readyFor(stabilization)), heldOpen},
		{"a reverted hook is opened when the backend goes", in, subject(own, onRecord(judged(backend.Ready)), notReady), opensIt},
		{"a reverted hook is left alone while the backend serves", in, subject(own, onRecord(), ready), reverted},
		{"a reverted hook is held open without a begun cycle, too", shoot(phase.GoingDown, withoutCycle),
			subject(own, onRecord(), notReady), opensIt},
		{"a half reverted hook is opened in the reverted field only", in,
			subject(hook.Values{Policy: fail, Timeout: 3}, owned(guard, timeout), owned("helm", policy), onRecord(), notReady), opensIt},
		{"a half reverted hook is left alone while the backend serves", in,
			subject(hook.Values{Policy: fail, Timeout: 3}, owned(guard, timeout), owned("helm", policy), onRecord(), ready), heldOpen},
		{"a hook given back by the deadline is opened when its backend goes after all", in,
			subject(own, onRecord(returned(stabilization)), notReady), opensIt},
		{"an opt-out set meanwhile keeps a reverted hook closed", in, subject(own, onRecord(), notReady, outOfScope), reverted},
		{"Report keeps a reverted hook closed", shoot(phase.GoingDown, reportMode), subject(own, onRecord(), notReady), reverted},
	})
}

func TestWakingUp(t *testing.T) {
	in, first := shoot(phase.WakingUp), shoot(phase.WakingUp, call)
	judgedReady := func(s *decide.Subject) {
		s.Memory = decide.Memory{State: backend.Ready, Seen: now.Add(-30 * time.Second)}
	}
	check(t, []decision{
		{"the call opens what is not ready, recorded or not", first, subject(own, notReady), opensIt},
		{"the call takes an unknown verdict for not ready", first, subject(own, unknown), opensIt},
		{"the call takes no verdict for not ready", first, subject(own), opensIt},
		{"the call opens a reverted hook that cannot be judged", first, subject(own, onRecord(), unknown), opensIt},
		{"the call leaves a hook with a ready backend", first, subject(own, ready), leftAlone},
		{"the call leaves an unknown backend that was judged ready before in this cycle", first, subject(own, unknown, judgedReady), leftAlone},
		{"what was judged before the cycle does not count", shoot(phase.WakingUp, call, func(in *decide.Shoot) { in.Begun = now }),
			subject(own, unknown, judgedReady), opensIt},
		{"what was judged in the moment the cycle began does count", shoot(phase.WakingUp, call, func(in *decide.Shoot) { in.Begun = now.Add(-30 * time.Second) }),
			subject(own, unknown, judgedReady), leftAlone},
		{"a hook that was given back is not opened by a later call", first, subject(own, onRecord(returned(0)), notReady), watched},
		{"a hook that was given back is not opened by a later call that knows nothing", first, subject(own, onRecord(returned(0)), unknown), watched},
		{"the loop opens a new hook whose backend is not ready", in, subject(own, notReady), opensIt},
		{"the loop opens nothing new without a begun cycle", shoot(phase.WakingUp, withoutCycle), subject(own, notReady), leftAlone},
		{"the loop does not act on an unknown verdict", in, subject(own, unknown), leftAlone},
		{"a reverted hook is opened again while its backend is not ready", in, subject(own, onRecord(), notReady), opensIt},
		{"an opt-out set meanwhile keeps a reverted hook closed", in, subject(own, onRecord(), notReady, outOfScope), reverted},
		{"awake, nothing is opened", shoot(phase.Awake), subject(own, notReady), leftAlone},
		{"awake, nothing on record is opened", shoot(phase.Awake), subject(own, onRecord(), notReady), done.in(decide.Watched)},
	})
}

func TestOpenedAndRecord(t *testing.T) {
	g := NewWithT(t)
	d := decide.Decide(shoot(phase.GoingDown, call), subject(own, owned("helm", policy, timeout)))
	g.Expect(d.Record.Original).To(Equal(own.Original()))
	g.Expect(d.Record.FormerOwners).To(ConsistOf(helm(policy, timeout)))
	g.Expect(d.Record.Why).To(Equal("the Shoot is about to hibernate"))
	g.Expect(d.Record.Backend).To(Equal(&v1alpha1.Backend{Namespace: "hooks", Name: "hook", Port: 443}))
	g.Expect(d.Record.Opened).To(BeNil(), "the API server has not accepted anything yet")

	d = decide.Decide(shoot(phase.GoingDown), subject(opened, opens, onRecord(neverOpened), notReady))
	g.Expect(d.Record.Opened.Time).To(Equal(now))

	d = decide.Decide(shoot(phase.WakingUp), subject(opened, onRecord(neverOpened), notReady))
	g.Expect(d.Record.Opened.Time).To(Equal(now), "an object without managedFields was opened, too")

	d = decide.Decide(shoot(phase.GoingDown), subject(own, notReady))
	g.Expect(d.Record.Why).To(Equal("because"), "the loop opens for what it sees")

	d = decide.Decide(shoot(phase.WakingUp), subject(own, notReady))
	g.Expect(d.Record.Why).To(Equal("because"))
	g.Expect(d.Message).To(Equal("because"))

	d = decide.Decide(shoot(phase.WakingUp, call), subject(own))
	g.Expect(d.Record.Why).To(ContainSubstring("could not be judged"))
}

func TestNotOpenable(t *testing.T) {
	refused := func(s *decide.Subject) { s.Opens.Refused, s.Opens.RefusedAt = "spec is bad", "7" }
	stuck := expectation{state: decide.NotOpenable}
	check(t, []decision{
		{"an object that the API server refused at this version is not tried again", shoot(phase.GoingDown, call), subject(own, refused), stuck},
		{"the call of a wake-up does not try it either", shoot(phase.WakingUp, call), subject(own, refused, notReady), stuck},
		{"a record of it is kept", shoot(phase.WakingUp), subject(own, refused, notReady, onRecord()), stuck.recordedToo()},
		{"so is one that was just taken from the annotation of a hook that is half open", shoot(phase.WakingUp),
			subject(hook.Values{Policy: ignore, Timeout: 10}, refused, notReady, owned(guard, policy), annotated(own)), stuck.recordedToo()},
		{"a changed object is tried", shoot(phase.GoingDown, call),
			subject(own, refused, func(s *decide.Subject) { s.Configuration.ResourceVersion = "8" }), opensIt},
	})
	g := NewWithT(t)
	g.Expect(decide.Decide(shoot(phase.GoingDown, call), subject(own, refused)).Message).To(Equal("spec is bad"))
}

func TestLeft(t *testing.T) {
	g := NewWithT(t)
	d := decide.Decide(shoot(phase.GoingDown, call), subject(own, outOfScope))
	g.Expect(d.Reason).To(Equal(string(scope.LeaveLabel)))
	g.Expect(d.Message).To(Equal("left"))

	d = decide.Decide(shoot(phase.GoingDown, call), subject(own, func(s *decide.Subject) {
		s.Scope = scope.Verdict{Reason: scope.GardenerManaged, Message: "Gardener's own"}
	}))
	g.Expect(d.State).To(Equal(decide.Left))
	g.Expect(d.Message).To(BeEmpty(), "nobody has to hear of what is Gardener's own")
}
