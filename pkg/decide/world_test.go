// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/decide"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
)

// object is a configuration with one hook as the API server has it.
type object struct {
	uid, version int
	exists       bool // the entry; the configuration always does
	values       hook.Values
	owners       map[string]string // field -> manager
	annotation   *v1alpha1.Original
}

func (o object) configuration() hook.Configuration {
	c := hook.Configuration{
		Kind: hook.Validating, Name: "cfg", UID: types.UID(strconv.Itoa(o.uid)), ResourceVersion: strconv.Itoa(o.version),
	}
	s := decide.Subject{Configuration: c}
	fields := map[string][]string{}
	for field, manager := range o.owners {
		fields[manager] = append(fields[manager], field)
	}
	for _, manager := range slices.Sorted(maps.Keys(fields)) {
		owned(manager, fields[manager]...)(&s)
	}
	if o.annotation != nil {
		annotated(hook.Values{Policy: o.annotation.FailurePolicy, Timeout: o.annotation.TimeoutSeconds})(&s)
	}
	c = s.Configuration
	if o.exists {
		c.Hooks = []hook.Hook{{Name: hookName, Values: o.values, Service: &hook.Service{Namespace: "hooks", Name: "hook", Port: 443}}}
	}
	return c
}

func (o object) clone() object {
	o.owners = maps.Clone(o.owners)
	return o
}

// set writes values as that manager; who changes a value owns it alone.
func (o *object) set(manager string, v hook.Values, tracked bool) {
	own := func(field string, changed bool) {
		if changed && tracked {
			o.owners[field] = manager
		}
	}
	own(policy, o.values.Policy != v.Policy)
	own(timeout, o.values.Timeout != v.Timeout)
	o.values = v
	o.version++
}

// ours says whether a field belongs to the guard.
func (o object) ours() bool { return o.owners[policy] == guard || o.owners[timeout] == guard }

// apply does what the guard does for a decision that was made on the object seen; false is a refusal.
func (o *object) apply(d decide.Decision, seen object, tracked bool) bool {
	same := o.uid == seen.uid && o.exists == seen.exists
	switch d.Action {
	case decide.OpenIt:
		if !same || o.version != seen.version {
			return false
		}
		o.set(guard, d.To, tracked)
		o.annotation = &d.Record.Original
	case decide.RestoreIt:
		if !same || (o.annotation == nil) != (seen.annotation == nil) ||
			d.From.Policy != d.To.Policy && o.values.Policy != d.From.Policy ||
			d.From.Timeout != d.To.Timeout && o.values.Timeout != d.From.Timeout {
			return false
		}
		to := o.values
		if d.From.Policy != d.To.Policy {
			to.Policy = d.To.Policy
		}
		if d.From.Timeout != d.To.Timeout {
			to.Timeout = d.To.Timeout
		}
		o.set(guard, to, tracked)
		o.annotation = nil
	case decide.ReleaseIt:
		if !same || o.version != seen.version {
			return false
		}
		o.release(d)
	}
	return true
}

func (o *object) release(d decide.Decision) {
	o.version++
	if o.annotation != nil {
		o.annotation = nil
		return
	}
	for field, manager := range o.owners {
		if manager == guard {
			delete(o.owners, field)
		}
	}
	if d.Record == nil {
		return
	}
	for _, owner := range d.Record.FormerOwners {
		for _, field := range owner.Fields {
			if o.owners[field] == "" {
				o.owners[field] = owner.Manager
			}
		}
	}
}

// truth are the values that others gave each field and that the guard may end at; more than one where a value that looks like an
// open one can be meant either way.
type truth struct {
	policies []apiPolicy
	timeouts []int32
}

func (t truth) allows(v hook.Values) bool {
	return slices.Contains(t.policies, v.Policy) && slices.Contains(t.timeouts, v.Timeout)
}

func (t *truth) is(v hook.Values) { t.policies, t.timeouts = []apiPolicy{v.Policy}, []int32{v.Timeout} }

// changed is what a write says: a value that stays as it was is not written, and one that looks open may be an old one.
func (t *truth) changed(from, to hook.Values) {
	if from.Policy != to.Policy {
		if to.Policy == fail {
			t.policies = nil
		}
		t.policies = append([]apiPolicy{to.Policy}, t.policies...)
	}
	if from.Timeout != to.Timeout {
		if to.Timeout > 5 {
			t.timeouts = nil
		}
		t.timeouts = append([]int32{to.Timeout}, t.timeouts...)
	}
}

func (t *truth) maybe(v hook.Values) {
	t.policies, t.timeouts = append(t.policies, v.Policy), append(t.timeouts, v.Timeout)
}

// value is the one its owner writes when it writes all.
func (t truth) value() hook.Values {
	return hook.Values{Policy: t.policies[0], Timeout: t.timeouts[0]}
}

// state is the durable record; the hook's key is its uid.
type state = v1alpha1.GuardState
