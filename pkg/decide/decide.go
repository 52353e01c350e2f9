// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/backend"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/record"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/scope"
)

// Decide says what is to be done with one hook now. It may be asked again at any time: no decision depends on the one before
// having been carried out.
//
// An unknown verdict never opens or restores a hook, except in the lifecycle call of a transition, where it counts as not ready.
// It does not keep back what is left of ours on a hook that was given back before.
func Decide(in Shoot, s Subject) Decision {
	if s.Memory.Seen.Before(in.Begun) {
		s.Memory = Memory{}
	}
	d := Decision{Memory: remember(in.Now, s), BackendWent: went(s)}
	if d.BackendWent {
		s.Opens.Streak = 0
	}
	if s.Hook == nil {
		return vanished(in, s, d)
	}
	if s.Record == nil && s.Scope.Reason == scope.GardenerManaged {
		// Never ours: an annotation or a field manager's name on it is forged.
		d.State, d.Reason = Left, string(s.Scope.Reason)
		return d
	}
	if s.Record != nil {
		rec := repair(s)
		if rec == nil {
			return damaged(s, d)
		}
		s.Record = rec
	}
	rec, f := recorded(in, s)
	if rec == nil {
		return notOnRecord(in, s, d)
	}
	s.Record, d.Record = rec, rec // also one that was just taken from the annotation is kept, whatever becomes of the hook now
	d.Reason, d.Message = told(s)
	switch {
	case f.atOriginal():
		return atOriginal(in, s, d)
	case rec.Returned != nil:
		return openAgain(in, s, d, f)
	default:
		return open(in, s, d, f)
	}
}

// damaged keeps a record that nothing can be restored from.
func damaged(s Subject, d Decision) Decision {
	d.State, d.Reason, d.Record = OriginalUnknown, v1alpha1.ReasonOriginalUnknown, s.Record.DeepCopy()
	d.Message = fmt.Sprintf("its record is damaged (failurePolicy %.20q, timeoutSeconds %d): set both by hand",
		s.Record.Original.FailurePolicy, s.Record.Original.TimeoutSeconds)
	return d
}

func is(s Subject, state backend.State) bool { return s.Verdict != nil && s.Verdict.State == state }

// told is the verdict as reason and message.
func told(s Subject) (string, string) {
	switch {
	case s.Verdict != nil:
		return string(s.Verdict.Reason), s.Verdict.Message
	case s.Hook.Service == nil:
		return string(backend.Inconclusive), "its backend is no Service, so nothing tells whether it answers"
	default:
		return "", ""
	}
}

// notOnRecord decides on a hook that we have not changed.
func notOnRecord(in Shoot, s Subject, d Decision) Decision {
	if openWithoutOriginal(in, s) {
		d.State, d.Reason = OriginalUnknown, v1alpha1.ReasonOriginalUnknown
		d.Message = "it is fail-open because of the guard, but its own values are neither on record nor in its annotation: set failurePolicy and timeoutSeconds by hand"
		return d
	}
	d.State = Enforced
	if !s.Scope.InScope {
		d.State, d.Reason = Left, string(s.Scope.Reason)
		if s.Scope.Reportable {
			d.Message = s.Scope.Message
		}
	}
	rec := record.New(s.Configuration, *s.Hook)
	rec.Why = why(in, s)
	d.Record = &rec
	if to, opens := toOpen(in, s, d, fields{}); opens {
		return openIt(in, s, d, to)
	}
	d.Record = nil
	if leftover(s) {
		d.State, d.Action, d.NextCheck = Returning, ReleaseIt, in.probe()
	}
	return d
}

func why(in Shoot, s Subject) string {
	switch {
	case in.Phase == phase.GoingDown && in.Call:
		return "the Shoot is about to hibernate"
	case s.Verdict != nil && s.Verdict.Message != "":
		return s.Verdict.Message
	default:
		return "its backend could not be judged before nodes join"
	}
}

// toOpen returns the values of the hook when it is open, and whether it is to be set to them. An open timeout that was configured
// otherwise then stays.
func toOpen(in Shoot, s Subject, d Decision, f fields) (hook.Values, bool) {
	to := openValues(in, *s.Hook, *d.Record)
	if f.timeout == ours {
		to.Timeout = s.Hook.Values.Timeout
	}
	return to, to != s.Hook.Values && wants(in, s, d) && mayOpen(in, s)
}

// mayOpen says whether a hook that is not open may be opened at all.
func mayOpen(in Shoot, s Subject) bool {
	if in.Settings.Report || !s.Scope.InScope {
		return false
	}
	return s.Record != nil || in.Call || in.MayOpenNew
}

// wants says whether the phase and the verdict want the hook open.
func wants(in Shoot, s Subject, d Decision) bool {
	if in.Phase != phase.GoingDown && in.Phase != phase.WakingUp {
		return false
	}
	switch {
	case is(s, backend.NotReady):
		return true
	case !in.Call:
		return false
	case in.Phase == phase.GoingDown:
		// Everything in scope, without waiting for verdicts; but a live owner that reverted us is not fought.
		return d.Record.Opened == nil || d.Record.Verdict != string(backend.Ready)
	default:
		// Unknown counts as not ready; a hook that was judged ready, now or before in this cycle, is the loop's matter.
		return d.Memory.State != backend.Ready
	}
}

// openIt opens a hook, as fast as its owner's reverts allow.
func openIt(in Shoot, s Subject, d Decision, to hook.Values) Decision {
	wait := s.Opens.wait(in.Now)
	switch {
	case s.Opens.Refused != "" && s.Opens.RefusedAt == s.Configuration.ResourceVersion:
		d.State, d.Reason, d.Message = NotOpenable, v1alpha1.ReasonNotOpenable, s.Opens.Refused
		if s.Record == nil {
			d.Record = nil
		}
		return d
	case wait > 0 && !in.Call:
		d.NextCheck = wait
		if s.Record == nil {
			d.Record = nil // nothing is recorded before it is needed
			return d
		}
		d.State = Reverted
	default:
		d.State, d.Action, d.NextCheck = Open, OpenIt, probeInterval
		d.From, d.To = s.Hook.Values, to
	}
	d.Reason, d.Message = told(s)
	return fought(in, s, d)
}

// fought names the owner that closes the hook again and again; the last one that did is the former owner of the policy.
func fought(in Shoot, s Subject, d Decision) Decision {
	if !s.Opens.Fought(in.Now) || !is(s, backend.NotReady) {
		return d
	}
	manager := "an unknown manager"
	for _, o := range d.Record.FormerOwners {
		if slices.Contains(o.Fields, hook.FieldFailurePolicy) {
			manager = o.Manager
		}
	}
	d.Reason = v1alpha1.ReasonRevertedByOwner
	d.Message = fmt.Sprintf("%s puts its own values back while nothing answers behind it: opened %d times within 10 minutes",
		manager, s.Opens.recent(in.Now))
	return d
}

// open decides on a hook on record that is not fully at its original.
func open(in Shoot, s Subject, d Decision, f fields) Decision {
	d.State, d.NextCheck = Open, in.probe()
	if d.Record.Opened == nil {
		d.Record.Opened = &metav1.Time{Time: in.Now}
	}
	if back, when := givesBack(in, s, d); back {
		if when > 0 {
			d.State, d.NextCheck = Stabilizing, min(when, probeInterval)
			return d
		}
		d.State, d.Action, d.NextCheck = Returning, RestoreIt, time.Second
		d.From, d.To = s.Hook.Values, values(d.Record.Original) // a field that is not ours stands there already
		return d
	}
	if to, opens := toOpen(in, s, d, f); opens {
		return openIt(in, s, d, to)
	}
	if in.overdue() {
		d.State = StillOpen
		return d
	}
	return fought(in, s, d)
}

// givesBack says whether an open hook gets its original back, and after what time.
func givesBack(in Shoot, s Subject, d Decision) (bool, time.Duration) {
	if in.Phase == phase.GoingDown && !in.GiveUp {
		return false, 0
	}
	if is(s, backend.Ready) {
		return true, max(0, in.Settings.Stabilization-in.Now.Sub(d.Memory.ReadySince))
	}
	if in.Phase == phase.GoingDown || !in.DeadlinePassed || in.IsHibernated {
		return false, 0
	}
	// The deadline leaves open what may be cured. Broken before the sleep: nothing gets worse. No Service: nothing can tell a cure.
	brokenBefore := d.Record.Verdict == string(backend.NotReady)
	return is(s, backend.NotReady) && (brokenBefore || in.Settings.RestoreByForce) || s.Hook.Service == nil, 0
}

// atOriginal decides on a hook on record that stands at its original.
func atOriginal(in Shoot, s Subject, d Decision) Decision {
	rec := d.Record
	if in.Phase == phase.GoingDown && !in.GiveUp && rec.Returned != nil {
		// Given back, but the Shoot goes down after all: it is opened as if it had never been.
		rec.Opened, rec.Returned, rec.ReturnedBy = nil, nil, ""
	}
	limit := rec.Returned != nil && rec.Reopened >= maxReopens
	over := rec.Returned != nil && (in.Call || !watched(in, rec)) // judged in this cycle, or past its watch
	if to, opens := toOpen(in, s, d, fields{}); opens && !limit && !over {
		if rec.Returned != nil {
			rec.Returned, rec.ReturnedBy = nil, ""
			rec.Reopened++
		}
		return openIt(in, s, d, to)
	}
	if in.Phase == phase.GoingDown && !in.GiveUp {
		d.State, d.NextCheck = Reverted, probeInterval // its owner is alive; it is opened when the backend goes
		return d
	}
	if rec.Returned == nil {
		if is(s, backend.Unknown) || in.Phase == phase.WakingUp && !is(s, backend.Ready) {
			d.State, d.NextCheck = Reverted, in.probe()
			return d
		}
		rec.Returned, rec.ReturnedBy = &metav1.Time{Time: in.Now}, v1alpha1.ReturnedByOwner
		if isOurs(s.Configuration, s.Hook.Name) {
			rec.ReturnedBy = v1alpha1.ReturnedByGuard // who writes a value owns it: an owner's write takes the field from us
		}
	}
	return settle(in, s, d, limit)
}

// settle finishes a hook that was given back: nothing of ours may be left, and it is watched for the stabilization time.
func settle(in Shoot, s Subject, d Decision, limit bool) Decision {
	switch {
	case leftover(s):
		d.State, d.Action, d.NextCheck = Returning, ReleaseIt, in.probe()
	case watched(in, d.Record):
		d.State, d.NextCheck = Watched, min(probeInterval, d.Record.Returned.Add(in.Settings.Stabilization).Sub(in.Now))
	case limit && s.Verdict != nil && !is(s, backend.Ready):
		d.State, d.Reason = RestoreFailed, v1alpha1.ReasonRestoreFailed
		d.Message = "its backend went away three times after the hook was given back; it is left at its own values"
	default:
		d.State = Done
	}
	return d
}

// watched says whether a hook was given back less than the stabilization time ago.
func watched(in Shoot, rec *v1alpha1.HookRecord) bool {
	return in.Now.Before(rec.Returned.Add(in.Settings.Stabilization))
}

// openAgain decides on a hook that was given back and stands open again although we did not open it. Like any open hook it is
// given back once its backend is ready.
func openAgain(in Shoot, s Subject, d Decision, f fields) Decision {
	if d.Record.Reopened >= maxReopens {
		d.State, d.Reason = RestoreFailed, v1alpha1.ReasonRestoreFailed
		d.Message = "somebody set it fail-open again three times after it was given back"
		return d
	}
	d.Record.Returned, d.Record.ReturnedBy = nil, ""
	d.Record.Reopened++
	return open(in, s, d, f)
}

// vanished decides on a hook that is on record and exists no longer.
func vanished(in Shoot, s Subject, d Decision) Decision {
	d.State = Gone
	if !s.ConfigurationExists {
		return d
	}
	d.Record = s.Record.DeepCopy()
	d.Record.Gone = true
	if d.Memory.ReadySince.IsZero() {
		return d
	}
	since := d.Memory.ReadySince
	if d.Memory.GoneSince.After(since) {
		since = d.Memory.GoneSince
	}
	rest := goneAfterReady - in.Now.Sub(since)
	if rest <= 0 {
		d.Record = nil
		return d
	}
	d.NextCheck = min(probeInterval, rest)
	return d
}
