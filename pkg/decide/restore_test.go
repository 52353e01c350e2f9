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
)

var (
	stabilizing = expectation{state: decide.Stabilizing, recorded: true}
	stillOpen   = expectation{state: decide.StillOpen, recorded: true}
)

func openHook(change ...func(*decide.Subject)) decide.Subject {
	return subject(opened, append([]func(*decide.Subject){opens, annotated(own), onRecord()}, change...)...)
}

func TestStabilization(t *testing.T) {
	in := shoot(phase.WakingUp)
	none := func(in *decide.Shoot) { in.Settings.Stabilization = 0 }
	check(t, []decision{
		{"the first ready verdict restores nothing", in, openHook(ready), stabilizing},
		{"ready a moment less than the stabilization time", in, openHook(readyFor(stabilization - 1)), stabilizing},
		{"ready for the stabilization time", in, openHook(readyFor(stabilization)), restoresIt},
		{"awake, the same holds: a moment less", shoot(phase.Awake, pastDeadline), openHook(readyFor(stabilization - 1)), stabilizing},
		{"awake, the same holds: long enough", shoot(phase.Awake, pastDeadline), openHook(readyFor(stabilization)), restoresIt},
		{"with no stabilization time the first ready verdict restores", shoot(phase.WakingUp, none), openHook(ready), restoresIt},
		{"looked at a minute ago, ready counts from then", in, openHook(readyFor(time.Hour), seen(time.Minute)), restoresIt},
		{"not looked at for more than a minute, ready counts from now", in, openHook(readyFor(time.Hour), seen(time.Minute+1)), stabilizing},
		{"ready since before the cycle counts from now", shoot(phase.WakingUp, func(in *decide.Shoot) { in.Begun = now }),
			openHook(readyFor(time.Hour)), stabilizing},
		{"not ready restores nothing", in, openHook(notReady), heldOpen},
		{"no verdict restores nothing", in, openHook(), heldOpen},
	})

	g := NewWithT(t)
	d := decide.Decide(in, openHook(readyFor(stabilization-3*time.Second)))
	g.Expect(d.NextCheck).To(Equal(3 * time.Second))
	d = decide.Decide(in, openHook(ready))
	g.Expect(d.NextCheck).To(Equal(10 * time.Second))
	g.Expect(d.Memory.ReadySince).To(Equal(now))
	d = decide.Decide(in, openHook(notReady))
	g.Expect(d.NextCheck).To(Equal(10*time.Second), "a mended certificate makes no event")
}

func seen(ago time.Duration) func(*decide.Subject) {
	return func(s *decide.Subject) { s.Memory.Seen = now.Add(-ago) }
}

func TestReadyWithoutABreak(t *testing.T) {
	for _, c := range []struct {
		name   string
		second func(*decide.Subject)
		action decide.Action
	}{
		{"ready all the time restores", ready, decide.RestoreIt},
		{"not ready in between starts again", notReady, decide.None},
		{"unknown in between starts again", unknown, decide.None},
		{"no verdict in between is no break", func(s *decide.Subject) { s.Verdict = nil }, decide.RestoreIt},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			d := decide.Decide(shoot(phase.WakingUp), openHook(ready))
			for i, change := range []func(*decide.Subject){c.second, ready} {
				s := openHook(change)
				s.Memory = d.Memory
				d = decide.Decide(shoot(phase.WakingUp, at(time.Duration(i+1)*stabilization/2)), s)
			}
			g.Expect(d.Action).To(Equal(c.action))
		})
	}
}

func TestWakingUpDeadline(t *testing.T) {
	in, broken := shoot(phase.Awake, pastDeadline), onRecord(judged(backend.NotReady))
	check(t, []decision{
		{"before the deadline a broken backend restores nothing", shoot(phase.WakingUp), openHook(broken, notReady), heldOpen},
		{"past it a hook that was broken before the sleep gets its original back", in, openHook(broken, notReady), restoresIt},
		{"but not while the Cluster says hibernated", shoot(phase.Awake, pastDeadline, hibernated), openHook(broken, notReady), stillOpen},
		{"and not on an unknown verdict", in, openHook(broken, unknown), stillOpen},
		{"a hook that served before the sleep stays open", in, openHook(onRecord(judged(backend.Ready)), notReady), stillOpen},
		{"a hook that could not be judged before the sleep stays open", in, openHook(onRecord(judged(backend.Unknown)), notReady), stillOpen},
		{"a hook that was not judged before the sleep stays open", in, openHook(notReady), stillOpen},
		{"by force it is restored", shoot(phase.Awake, pastDeadline, byForce), openHook(notReady), restoresIt},
		{"not by force before the deadline", shoot(phase.WakingUp, byForce), openHook(notReady), heldOpen},
		{"not by force on an unknown verdict", shoot(phase.Awake, pastDeadline, byForce), openHook(unknown), stillOpen},
		{"not by force while the Cluster says hibernated", shoot(phase.Awake, pastDeadline, byForce, hibernated), openHook(notReady), stillOpen},
		{"a hook that is open past the deadline is cured later", in, openHook(readyFor(stabilization)), restoresIt},
		{"also while the Cluster still says hibernated", shoot(phase.Awake, pastDeadline, hibernated), openHook(readyFor(stabilization)), restoresIt},
		{"a backend that is no Service any more cannot be cured: given back at the deadline", in, openHook(urlBackend), restoresIt},
		{"but not before", shoot(phase.WakingUp), openHook(urlBackend), heldOpen},
		{"a hook that its owner closes past the deadline is given back although nothing answers", in,
			subject(own, onRecord(), notReady), watched},
		{"the next hibernation has not reached a deadline of the last wake-up", shoot(phase.GoingDown, pastDeadline), openHook(notReady), heldOpen},
		{"awake without a deadline, as after finding an annotation, is not past one", shoot(phase.Awake), openHook(notReady), heldOpen},
	})
	g := NewWithT(t)
	for _, c := range []struct {
		in   decide.Shoot
		want time.Duration
	}{{in, 0}, {shoot(phase.WakingUp), 10 * time.Second}, {shoot(phase.GoingDown, giveUp, pastDeadline), 10 * time.Second}} {
		for _, s := range []decide.Subject{openHook(notReady), subject(own, onRecord(), unknown), subject(own, opens, onRecord(returned(time.Hour)), unknown), subject(own, opens)} {
			g.Expect(decide.Decide(c.in, s).NextCheck).To(Equal(c.want), "past the deadline nothing is probed: %v in %s", s.Hook.Values, c.in.Phase)
		}
	}
	g.Expect(decide.Decide(shoot(phase.WakingUp), openHook(urlBackend)).Message).To(ContainSubstring("no Service"))
}

func TestGoingDownDeadline(t *testing.T) {
	in := shoot(phase.GoingDown, giveUp)
	check(t, []decision{
		{"before it a ready backend restores nothing", shoot(phase.GoingDown), openHook(readyFor(stabilization)), heldOpen},
		{"past it hooks with a ready backend are restored", in, openHook(readyFor(stabilization)), restoresIt},
		{"once they are stable", in, openHook(readyFor(stabilization - 1)), stabilizing},
		{"those without stay held open", in, openHook(notReady), heldOpen},
		{"also when they were broken before", in, openHook(onRecord(judged(backend.NotReady)), notReady), heldOpen},
		{"and are opened again when somebody closes them", in, subject(own, onRecord(), notReady), opensIt},
		{"an unknown verdict restores nothing", in, openHook(unknown), heldOpen},
		{"by force nothing is restored in a hibernation", shoot(phase.GoingDown, giveUp, byForce, pastDeadline), openHook(notReady), heldOpen},
		{"a hook that stands at its original with a ready backend is given back", in, subject(own, onRecord(), ready), watched},
		{"and is done after its watch", in, subject(own, onRecord(returned(stabilization)), ready), done},
	})
}

func TestGivenBackWhateverForbidsOpening(t *testing.T) {
	for _, p := range []decide.Shoot{shoot(phase.WakingUp, reportMode), shoot(phase.Awake, pastDeadline, reportMode), shoot(phase.GoingDown, giveUp, reportMode)} {
		check(t, []decision{
			{"Report gives back what is on record, " + string(p.Phase), p, openHook(readyFor(stabilization)), restoresIt},
			{"Report and opt-out together, " + string(p.Phase), p, openHook(readyFor(stabilization), outOfScope), restoresIt},
			{"Report releases what is left, " + string(p.Phase), p, subject(own, opens, onRecord(), ready), releasesIt},
		})
	}
	in := shoot(phase.WakingUp)
	check(t, []decision{
		{"an opt-out set in the window gives back", in, openHook(readyFor(stabilization), outOfScope), restoresIt},
		{"an opt-out does not restore before the backend is ready", in, openHook(notReady, outOfScope), heldOpen},
		{"an opted-out hook that is open by annotation alone is given back", in,
			subject(opened, opens, annotated(own), readyFor(stabilization), outOfScope), restoresIt},
		{"opted out and at the deadline it was broken before", shoot(phase.Awake, pastDeadline),
			openHook(onRecord(judged(backend.NotReady)), notReady, outOfScope), restoresIt},
		{"a restored hook is released although opted out", in, subject(own, opens, onRecord(returned(0)), ready, outOfScope), releasesIt},
		{"leftovers of a hook that is not on record are released although opted out", in, subject(own, opens, ready, outOfScope),
			expectation{state: decide.Returning, action: decide.ReleaseIt}},
	})
}

func TestCrashBetweenRestoreAndHandBack(t *testing.T) {
	in := shoot(phase.WakingUp)
	check(t, []decision{
		{"the next pass hands back, the restore not being on record", in, subject(own, opens, onRecord(), ready), releasesIt},
		{"and with the restore on record", in, subject(own, opens, onRecord(returned(time.Hour)), ready), releasesIt},
		{"and with an unknown verdict, since the hook itself does not change", in, subject(own, opens, onRecord(returned(time.Hour)), unknown), releasesIt},
		{"and past the deadline", shoot(phase.Awake, pastDeadline), subject(own, opens, onRecord(), notReady), releasesIt},
		{"and without a record", in, subject(own, opens, ready), expectation{state: decide.Returning, action: decide.ReleaseIt}},
		{"and awake without a record", shoot(phase.Awake), subject(own, opens), expectation{state: decide.Returning, action: decide.ReleaseIt}},
		{"an annotation alone is removed, too", in, subject(own, annotated(own), onRecord(returned(time.Hour)), ready), releasesIt},
		{"an annotation of a closed hook that is not on record is removed", shoot(phase.Awake), subject(own, annotated(own)),
			expectation{state: decide.Returning, action: decide.ReleaseIt}},
	})
	g := NewWithT(t)
	g.Expect(decide.Decide(in, subject(own, opens, onRecord(), ready)).Record.ReturnedBy).To(Equal(v1alpha1.ReturnedByGuard))
	g.Expect(decide.Decide(in, subject(own, owned("helm", policy, timeout), onRecord(), ready)).Record.ReturnedBy).To(Equal(v1alpha1.ReturnedByOwner))
}

func TestRestoreWritesOnlyWhatIsOurs(t *testing.T) {
	in := shoot(phase.WakingUp)
	check(t, []decision{
		{"a policy that its owner restored stays, our timeout is restored", in,
			subject(hook.Values{Policy: fail, Timeout: 3}, owned(guard, timeout), owned("helm", policy), onRecord(), readyFor(stabilization)), restoresIt},
		{"a timeout that its owner restored stays, our policy is restored", in,
			subject(hook.Values{Policy: ignore, Timeout: 10}, owned(guard, policy), owned("helm", timeout), onRecord(), readyFor(stabilization)), restoresIt},
		{"a foreign timeout stays, our policy is restored", in,
			subject(hook.Values{Policy: ignore, Timeout: 7}, owned(guard, policy), owned("helm", timeout), onRecord(), readyFor(stabilization)),
			expectation{decide.Returning, decide.RestoreIt, hook.Values{Policy: fail, Timeout: 7}, true}},
		{"a policy that another manager took stays, our timeout is restored", in,
			subject(opened, owned(guard, timeout), owned("helm", policy), onRecord(), readyFor(stabilization)),
			expectation{decide.Returning, decide.RestoreIt, hook.Values{Policy: ignore, Timeout: 10}, true}},
	})
}
