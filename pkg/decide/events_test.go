// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"time"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/backend"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/decide"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/record"
)

// event is what happens between two passes.
func (w *world) event() {
	w.now = w.now.Add(time.Duration(w.r.IntN(4)*w.r.IntN(12)) * time.Second)
	w.phase()
	switch w.r.IntN(3) {
	case 0:
		w.judge()
	case 1:
		w.somebody()
	}
	switch w.r.IntN(16) {
	case 0:
		w.note("restart")
		w.memory, w.opens = decide.Memory{}, decide.Opens{}
	case 1:
		w.loseRecord()
	case 2:
		w.loseAnnotation()
	case 3:
		if !w.copies && w.tracked {
			w.in.Settings.OpenValidating = 8 - w.in.Settings.OpenValidating // 3 or 5
			w.note("open timeout %d", w.in.Settings.OpenValidating)
			if w.object.owners[timeout] != guard {
				w.truth.maybe(w.object.values) // neither its owner nor its value tells any more that it is ours
			}
		}
	}
}

// phase goes on, mostly by calls first.
func (w *world) phase() {
	w.in.Call = false
	if w.r.IntN(4) != 0 {
		return
	}
	w.in.GiveUp, w.in.DeadlinePassed, w.in.IsHibernated = false, false, false
	switch w.r.IntN(6) {
	case 0, 1:
		w.in.Phase, w.in.Call = phase.GoingDown, w.r.IntN(3) != 0
	case 2:
		w.in.Phase, w.in.GiveUp = phase.GoingDown, true
	case 3, 4:
		w.in.Phase, w.in.Call = phase.WakingUp, w.r.IntN(3) != 0
	case 5:
		w.in.Phase, w.in.DeadlinePassed, w.in.IsHibernated = phase.Awake, w.r.IntN(2) == 0, w.r.IntN(2) == 0
	}
	w.in.Settings.RestoreByForce = w.r.IntN(4) == 0
	w.in.Settings.Report = w.r.IntN(8) == 0
}

func (w *world) judge() {
	states := []backend.State{backend.Ready, backend.Ready, backend.Ready, backend.Ready, backend.NotReady, backend.NotReady, backend.Unknown, ""}
	state := states[w.r.IntN(len(states))]
	w.note("backend %s", state)
	w.verdict = nil
	if state != "" {
		w.verdict = &backend.Verdict{State: state, Members: [][]string{{"a"}, {"a", "b"}, {"b"}}[w.r.IntN(3)]}
	}
}

// somebody is one of the hook's other writers.
func (w *world) somebody() {
	manager := []string{"helm", "kubectl-edit"}[w.r.IntN(2)]
	switch w.r.IntN(7) {
	case 0, 1:
		w.revert(manager)
	case 2:
		w.change(manager)
	case 3:
		w.take(manager)
	case 4:
		w.putOldList()
	case 5:
		if !w.object.exists {
			w.refill()
		} else if w.r.IntN(2) == 0 {
			w.note("the entry vanishes")
			w.object.exists, w.object.owners = false, map[string]string{}
			w.object.version++
		}
	case 6:
		w.recreate()
	}
}

func (w *world) revert(manager string) {
	if v := w.truth.value(); w.object.exists {
		w.note("%s puts back %v", manager, v)
		w.truth.changed(w.object.values, v)
		w.object.set(manager, v, w.tracked)
	}
}

// change gives one field a new value that no open hook has.
func (w *world) change(manager string) {
	if !w.object.exists {
		return
	}
	v := w.object.values
	if w.r.IntN(2) == 0 && v.Policy == ignore {
		v.Policy = fail
		w.truth.policies = []apiPolicy{fail}
	} else {
		v.Timeout = []int32{7, 12, 20}[w.r.IntN(3)]
		if v.Timeout == w.object.values.Timeout {
			return
		}
		w.truth.timeouts = []int32{v.Timeout}
	}
	w.note("%s sets %v", manager, v)
	w.object.set(manager, v, w.tracked)
}

// take claims the fields with the values they have, as a forced apply does.
func (w *world) take(manager string) {
	if !w.tracked || !w.object.exists {
		return
	}
	w.note("%s takes the fields", manager)
	w.object.owners = map[string]string{policy: manager, timeout: manager}
	w.object.version++
	rec, onRecord := w.state.Hooks[w.key()]
	switch {
	case w.inPass || w.beginsCycle() || w.object.values.Timeout != w.in.Settings.OpenValidating:
		w.truth.maybe(w.object.values)
	case onRecord && rec.Returned == nil && rec.Reopened == 0:
		w.truth.is(w.object.values) // its own will since our open
	case onRecord && rec.Returned != nil && !w.now.Before(rec.Returned.Add(stabilization)) && rec.Reopened < 3:
		w.truth.is(w.object.values) // we are done with it
	}
}

// beginsCycle says whether the next pass begins a new cycle.
func (w *world) beginsCycle() bool {
	return w.in.Call && !(record.MayOpenNew(&w.state) && w.state.Cycle.Direction == w.direction())
}

// putOldList is a manager that writes what it read while the hook was open.
func (w *world) putOldList() {
	rec, ok := w.state.Hooks[w.key()]
	if !w.tracked || !w.object.exists || !ok || rec.Returned == nil {
		return
	}
	v := hook.Values{Policy: ignore, Timeout: min(rec.Original.TimeoutSeconds, w.in.Settings.OpenValidating)}
	w.note("an old list with %v", v)
	w.object.set("secrets-operator", v, true)
	if w.inPass || w.beginsCycle() || rec.Reopened >= 3 || !w.now.Before(rec.Returned.Add(stabilization)) {
		w.truth.maybe(v)
	}
}

func (w *world) refill() {
	v := w.truth.value()
	w.note("the entry is back with %v", v)
	w.object.exists = true
	w.object.values = v
	w.object.version++
	w.truth.is(v)
	if v.Policy == ignore || v.Timeout <= 5 { // looks open
		if rec, onRecord := w.state.Hooks[w.key()]; onRecord {
			w.truth.maybe(hook.Values{Policy: rec.Original.FailurePolicy, Timeout: rec.Original.TimeoutSeconds})
		}
		w.trustAnnotation()
	}
	if w.tracked {
		w.object.owners = map[string]string{policy: "kyverno", timeout: "kyverno"}
	}
}

// recreate makes a new object: by its owner, or as a copy of what stands, for which only the annotation speaks.
func (w *world) recreate() {
	if w.object.exists && w.copies && w.r.IntN(2) == 0 {
		if !w.truth.allows(w.object.values) && w.object.annotation == nil {
			return
		}
		w.note("copied with a new uid")
		w.object.owners = map[string]string{policy: "velero", timeout: "velero"}
		w.trustAnnotation()
	} else {
		w.note("created anew by its owner")
		w.object.annotation = nil
		w.refill()
	}
	w.object.uid++
	w.object.version++
}

// loseRecord empties the record while the annotation holds the original, too.
func (w *world) loseRecord() {
	if w.object.annotation != nil && w.object.exists && w.onlyAnnotationNeeded() {
		w.note("the record is lost")
		clear(w.state.Hooks)
		w.trustAnnotation()
	}
}

// trustAnnotation: without a record the annotation says what the owners want, also what they wanted before.
func (w *world) trustAnnotation() {
	if o := w.object.annotation; o != nil {
		if v := (hook.Values{Policy: o.FailurePolicy, Timeout: o.TimeoutSeconds}); !w.truth.allows(v) {
			w.truth.maybe(v)
		}
	}
}

// onlyAnnotationNeeded says whether the annotation has what the owners want wherever they do not have it already.
func (w *world) onlyAnnotationNeeded() bool {
	o, v := hook.Values{Policy: w.object.annotation.FailurePolicy, Timeout: w.object.annotation.TimeoutSeconds}, w.object.values
	if w.truth.allows(hook.Values{Policy: v.Policy, Timeout: w.truth.timeouts[0]}) {
		o.Policy = v.Policy
	}
	if w.truth.allows(hook.Values{Policy: w.truth.policies[0], Timeout: v.Timeout}) {
		o.Timeout = v.Timeout
	}
	return w.truth.allows(o)
}

// loseAnnotation removes the annotation while the record has the hook.
func (w *world) loseAnnotation() {
	if _, ok := w.state.Hooks[w.key()]; ok && w.object.annotation != nil {
		w.note("the annotation is lost")
		w.object.annotation = nil
		w.object.version++
	}
}
