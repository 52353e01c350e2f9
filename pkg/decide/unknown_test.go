// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/backend"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/decide"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
)

// unknowns are all ways in which nothing is known of a backend, each as the backend package judges it.
func unknowns() map[string]backend.Verdict {
	ref, cannot := backend.Ref{Namespace: "hooks", Name: "hook", Port: 443}, errors.New("cannot be read")
	return map[string]backend.Verdict{
		"bare":          {State: backend.Unknown},
		"cluster facts": backend.Judge(backend.Cluster{Now: now, Err: cannot}, ref, backend.Facts{}),
		"all facts":     backend.Judge(backend.Cluster{Now: now, Err: cannot}, ref, backend.Facts{Err: cannot}),
		"backend facts": backend.Judge(liveCluster(), ref, backend.Facts{Err: cannot}),
	}
}

// TestUnknownChangesNothing goes through every setting: whatever is on record and wherever the hook stands, no unknown verdict
// opens or restores it, and none concludes that it was given back. Only the lifecycle call of a transition takes it for not ready.
func TestUnknownChangesNothing(t *testing.T) {
	stands := []hook.Values{own, opened, {Policy: fail, Timeout: 3}, {Policy: ignore, Timeout: 10}, {Policy: ignore, Timeout: 7}}
	records := map[string][]func(*decide.Subject){
		"no record": {}, "never opened": {onRecord(neverOpened)}, "opened": {onRecord()},
		"broken before": {onRecord(judged(backend.NotReady))}, "given back": {onRecord(returned(time.Second))},
		"reopened": {onRecord(reopened(1))}, "annotated": {annotated(own)}, "both": {annotated(own), onRecord()},
	}
	for name, v := range unknowns() {
		if v.State != backend.Unknown {
			t.Fatalf("%s is judged %s", name, v.State)
		}
		for _, in := range loopPasses() {
			for _, values := range stands {
				for recorded, changes := range records {
					for _, entry := range []func(*decide.Subject){opens, owned("helm", policy, timeout), owned("helm")} {
						s := subject(values, append(changes, entry)...)
						s.Verdict = &v
						s.Memory = decide.Memory{State: backend.Ready, ReadySince: now.Add(-time.Hour), Seen: now.Add(-time.Second)}
						d := decide.Decide(in, s)
						where := fmt.Sprintf("%s, %+v, %v, %s", name, in, values, recorded)
						expectNoAction(t, where, s, d)
					}
				}
			}
		}
	}
}

func expectNoAction(t *testing.T, where string, s decide.Subject, d decide.Decision) {
	t.Helper()
	if d.Action == decide.OpenIt || d.Action == decide.RestoreIt {
		t.Fatalf("%s on an unknown verdict: %s", d.Action, where)
	}
	if s.Record != nil && s.Record.Returned == nil && (d.Action != decide.None || d.Record.Returned != nil) {
		t.Fatalf("a hook was taken for given back on an unknown verdict: %s", where)
	}
	if s.Record != nil && d.Record == nil {
		t.Fatalf("a record was forgotten on an unknown verdict: %s", where)
	}
	if !d.Memory.ReadySince.IsZero() {
		t.Fatalf("unknown counts as ready: %s", where)
	}
}

// loopPasses are all passes that are not the lifecycle call of a transition.
func loopPasses() []decide.Shoot {
	var out []decide.Shoot
	for _, p := range []phase.Phase{phase.GoingDown, phase.WakingUp, phase.Awake} {
		for bits := range 64 {
			out = append(out, shoot(p, func(in *decide.Shoot) {
				in.MayOpenNew, in.DeadlinePassed, in.GiveUp = bits&1 == 0, bits&2 != 0, bits&4 != 0
				in.IsHibernated, in.Settings.RestoreByForce, in.Settings.Report = bits&8 != 0, bits&16 != 0, bits&32 != 0
			}))
		}
	}
	return out
}

func TestUnknownInACall(t *testing.T) {
	for _, p := range []phase.Phase{phase.GoingDown, phase.WakingUp} {
		check(t, []decision{
			{"an unknown verdict opens, " + string(p), shoot(p, call), subject(own, unknown), opensIt},
			{"it opens what is on record, " + string(p), shoot(p, call), subject(own, onRecord(), unknown), opensIt},
			{"it restores nothing, " + string(p), shoot(p, call, byForce, pastDeadline), openHook(unknown), heldOpen.in(openState(p))},
		})
	}
	check(t, []decision{
		{"awake there is no transition to be called for", shoot(phase.Awake, call), subject(own, unknown), leftAlone},
		{"awake nothing is restored for it", shoot(phase.Awake, call), openHook(unknown), heldOpen},
	})
}

// openState of an open hook past a deadline of the last wake-up.
func openState(p phase.Phase) decide.State {
	if p == phase.GoingDown {
		return decide.Open
	}
	return decide.StillOpen
}
