// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/record"
)

// field is where one of the two fields of a hook stands.
type field int

const (
	// original: at the recorded value.
	original field = iota
	// ours: at the value of an open hook, because of the guard.
	ours
	// foreign: at a value that another manager gave it.
	foreign
)

// fields is where the two fields of a hook stand, each judged on its own (design R2).
type fields struct{ policy, timeout field }

func (f fields) atOriginal() bool { return f.policy == original && f.timeout == original }

// recorded returns the record of a hook that is on record or carries our annotation, with what other managers took since as new
// originals, and where its fields stand; nil for any other hook.
func recorded(in Shoot, s Subject) (*v1alpha1.HookRecord, fields) {
	rec := recordOf(in, s)
	if rec == nil {
		return nil, fields{}
	}
	stands, target := s.Hook.Values, openValues(in, *s.Hook, *rec)
	ourPolicy, ourTimeout := s.Configuration.Ours(s.Hook.Name)
	others := s.Configuration.Owners(s.Hook.Name)
	inherited := inherits(in, rec)
	f := fields{
		policy: where(stands.Policy, rec.Original.FailurePolicy, target.Policy,
			ourPolicy, inherited || !owns(others, hook.FieldFailurePolicy)),
		timeout: where(stands.Timeout, rec.Original.TimeoutSeconds, target.Timeout,
			ourTimeout, inherited || !owns(others, hook.FieldTimeoutSeconds)),
	}
	if f.policy == foreign {
		rec.Original.FailurePolicy, f.policy = stands.Policy, original
	}
	if f.timeout == foreign {
		rec.Original.TimeoutSeconds, f.timeout = stands.Timeout, original
	}
	rec.FormerOwners = formerOwners(rec.FormerOwners, others, ourPolicy, ourTimeout)
	return rec, f
}

// recordOf returns a copy of the record, or a new one from the annotation of a hook that stands open without a record.
func recordOf(in Shoot, s Subject) *v1alpha1.HookRecord {
	if s.Record != nil {
		rec := s.Record.DeepCopy()
		rec.Gone, rec.Backend = false, record.Backend(*s.Hook)
		return rec
	}
	if s.Annotated == nil || !standsOpen(in, s) {
		return nil
	}
	rec := record.New(s.Configuration, *s.Hook)
	rec.Original, rec.Reopened = *s.Annotated, 1 // found open
	rec.Why = "its annotation says that it was opened, the record was lost"
	return &rec
}

// standsOpen says whether a field of a hook that is not on record stands where we would have put it, given the original in our
// annotation. An open timeout that was configured otherwise then is known by its owner.
func standsOpen(in Shoot, s Subject) bool {
	stands, o := s.Hook.Values, *s.Annotated
	if stands.Policy == admissionregistrationv1.Ignore && o.FailurePolicy != admissionregistrationv1.Ignore {
		return true
	}
	_, ourTimeout := s.Configuration.Ours(s.Hook.Name)
	open := openValues(in, *s.Hook, v1alpha1.HookRecord{Original: o})
	return stands.Timeout != o.TimeoutSeconds && (ourTimeout || stands.Timeout == open.Timeout)
}

// inherits says whether an open value is of the guard's making although another manager owns the field. Two things do that: an
// object that was restored or copied with our annotation while it was open, and a manager that writes the whole list from what it
// read while the hook was open, after the hook was given back. Both are found open, and stay ours until they are given back.
func inherits(in Shoot, rec *v1alpha1.HookRecord) bool {
	if rec.Returned == nil {
		return rec.Reopened > 0
	}
	return watched(in, rec) || rec.Reopened >= maxReopens
}

// where says where a field stands. unclaimed: an open value in it is nobody else's.
func where[T comparable](value, orig, open T, our, unclaimed bool) field {
	switch {
	case value == orig:
		return original
	case our || unclaimed && value == open: // what we own we wrote, also with an open timeout that was configured otherwise then
		return ours
	default:
		return foreign
	}
}

// repair returns the record with an original that the API can take; nil if it is damaged beyond what the annotation, or a field
// that somebody else set since, can mend. The record is trusted no further than that.
func repair(s Subject) *v1alpha1.HookRecord {
	if valid(s.Record.Original) {
		return s.Record
	}
	o, h := s.Record.Original, *s.Hook
	ourPolicy, ourTimeout := s.Configuration.Ours(h.Name)
	others := s.Configuration.Owners(h.Name)
	if !valid(v1alpha1.Original{FailurePolicy: o.FailurePolicy, TimeoutSeconds: hook.MinTimeout}) {
		switch {
		case s.Annotated != nil:
			o.FailurePolicy = s.Annotated.FailurePolicy
		case h.Values.Policy == admissionregistrationv1.Fail, !ourPolicy && owns(others, hook.FieldFailurePolicy):
			o.FailurePolicy = h.Values.Policy
		}
	}
	if !valid(v1alpha1.Original{FailurePolicy: admissionregistrationv1.Fail, TimeoutSeconds: o.TimeoutSeconds}) {
		switch {
		case s.Annotated != nil:
			o.TimeoutSeconds = s.Annotated.TimeoutSeconds
		case !ourTimeout && owns(others, hook.FieldTimeoutSeconds):
			o.TimeoutSeconds = h.Values.Timeout
		}
	}
	if !valid(o) {
		return nil
	}
	rec := s.Record.DeepCopy()
	rec.Original = o
	return rec
}

func valid(o v1alpha1.Original) bool {
	_, err := hook.FromOriginal(o)
	return err == nil
}

// openWithoutOriginal says whether a hook that is neither on record nor in our annotation stands open because of the guard: we
// write no other Ignore, and the open timeout only to open.
func openWithoutOriginal(in Shoot, s Subject) bool {
	if s.Annotated != nil {
		return false
	}
	policy, timeout := s.Configuration.Ours(s.Hook.Name)
	open := openValues(in, *s.Hook, v1alpha1.HookRecord{Original: v1alpha1.Original{TimeoutSeconds: hook.MaxTimeout}})
	return policy && s.Hook.Values.Policy == admissionregistrationv1.Ignore || timeout && s.Hook.Values.Timeout == open.Timeout
}

// leftover says whether something of ours is left on the hook, or on its configuration and of no other hook.
func leftover(s Subject) bool {
	c := s.Configuration
	_, annotated := c.Annotations[v1alpha1.OriginalsAnnotation]
	switch {
	case isOurs(c, s.Hook.Name) || s.Annotated != nil:
		return true
	case !c.HasOurEntry() && !annotated:
		return false
	default:
		return !slices.ContainsFunc(c.Hooks, func(h hook.Hook) bool { return isOurs(c, h.Name) })
	}
}

func isOurs(c hook.Configuration, hookName string) bool {
	policy, timeout := c.Ours(hookName)
	return policy || timeout
}

func owns(owners []v1alpha1.FieldOwner, field string) bool {
	return slices.ContainsFunc(owners, func(o v1alpha1.FieldOwner) bool { return slices.Contains(o.Fields, field) })
}

// formerOwners keeps the owners on record for the fields that are ours or nobody's; the others have the owners of today.
func formerOwners(onRecord, today []v1alpha1.FieldOwner, ourPolicy, ourTimeout bool) []v1alpha1.FieldOwner {
	fresh := map[string]bool{
		hook.FieldFailurePolicy:  !ourPolicy && owns(today, hook.FieldFailurePolicy),
		hook.FieldTimeoutSeconds: !ourTimeout && owns(today, hook.FieldTimeoutSeconds),
	}
	var out []v1alpha1.FieldOwner
	take := func(owners []v1alpha1.FieldOwner, wanted bool) {
		for _, o := range owners {
			for _, field := range o.Fields {
				if fresh[field] == wanted {
					out = withField(out, o, field)
				}
			}
		}
	}
	take(today, true)
	take(onRecord, false)
	return out
}

func withField(owners []v1alpha1.FieldOwner, owner v1alpha1.FieldOwner, field string) []v1alpha1.FieldOwner {
	i := slices.IndexFunc(owners, func(o v1alpha1.FieldOwner) bool {
		return o.Manager == owner.Manager && o.Operation == owner.Operation && o.Subresource == owner.Subresource
	})
	if i < 0 {
		owner.Fields = []string{field}
		return append(owners, owner)
	}
	owners[i].Fields = slices.Compact(slices.Sorted(slices.Values(append(owners[i].Fields, field))))
	return owners
}

func openValues(in Shoot, h hook.Hook, rec v1alpha1.HookRecord) hook.Values {
	return hook.OpenValues(h, values(rec.Original), in.Settings.OpenValidating, in.Settings.OpenMutating)
}

func values(o v1alpha1.Original) hook.Values {
	return hook.Values{Policy: o.FailurePolicy, Timeout: o.TimeoutSeconds}
}
