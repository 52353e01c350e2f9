// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"maps"
	"slices"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

// ReleasePatch returns the JSON patch on managedFields alone that removes the guard's entries and gives each field that the guard
// still owns to its former owners, by hook name; false if there is nothing to release. Without it the next server-side apply with
// a changed value is a conflict, and one that leaves a field out does not bring the default back.
//
// The fields of a hook that nobody owned before, or that is not a key of owners, become nobody's. Only a hook that is not a key
// and stands at Ignore stays the guard's, and with it the entry: it may be open, and the ownership says by whom. A former owner
// whose entry is gone, and a field that somebody else took since, are passed over.
//
// It must be a patch of its own, after the restore: fields that a patch changes are attributed to its sender whatever the same
// patch says about managedFields. The API server refuses it (422) when the entries moved since c was read.
func ReleasePatch(c Configuration, owners map[string][]v1alpha1.FieldOwner) (Patch, bool, error) {
	removals, touched := c.ownRemovals(owners)
	if len(removals) == 0 {
		return Patch{}, false, nil
	}
	additions, receivers := c.handBack(owners)
	touched = slices.Compact(slices.Sorted(slices.Values(append(touched, receivers...))))

	var ops []operation
	for _, i := range touched {
		ops = append(ops,
			test(managedField(i, "manager"), c.ManagedFields[i].Manager),
			test(managedField(i, "operation"), c.ManagedFields[i].Operation))
	}
	ops = append(ops, additions...)
	patch, err := c.jsonPatch(append(ops, removals...))
	return patch, err == nil, err
}

// ownRemovals remove the guard's entries, or from one that is to stay the hooks that are released, the highest index first so that
// the others stay valid.
func (c Configuration) ownRemovals(owners map[string][]v1alpha1.FieldOwner) (ops []operation, touched []int) {
	for i, e := range slices.Backward(c.ManagedFields) {
		if e.Manager != v1alpha1.FieldManager {
			continue
		}
		released, stays := c.split(fieldsOf(e), owners)
		if stays && len(released) == 0 {
			continue
		}
		touched = append(touched, i)
		if !stays {
			ops = append(ops, remove(managedField(i)))
			continue
		}
		for _, name := range released {
			ops = append(ops, remove(managedField(i, "fieldsV1", webhooksElement, element(name))))
		}
	}
	return ops, touched
}

// split returns the hooks with fields in the set that are released, and whether there are others that stay.
func (c Configuration) split(set fieldSet, owners map[string][]v1alpha1.FieldOwner) (released []string, stays bool) {
	for _, h := range c.Hooks {
		_, given := owners[h.Name]
		switch {
		case len(set.of(h.Name)) == 0:
		case !given && h.Values.Policy == admissionregistrationv1.Ignore:
			stays = true
		default:
			released = append(released, h.Name)
		}
	}
	return released, stays
}

// handBack adds the fields that the guard owns to the entries of their former owners.
func (c Configuration) handBack(owners map[string][]v1alpha1.FieldOwner) (ops []operation, touched []int) {
	sets := make(map[int]fieldSet)
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		policy, timeout := c.Ours(name)
		ours := map[string]bool{FieldFailurePolicy: policy, FieldTimeoutSeconds: timeout}
		for _, owner := range owners[name] {
			i := slices.IndexFunc(c.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return owns(owner, e) })
			if i < 0 {
				continue
			}
			if _, ok := sets[i]; !ok {
				sets[i] = fieldsOf(c.ManagedFields[i])
			}
			before := len(ops)
			for _, field := range owner.Fields {
				if ours[field] {
					ops = append(ops, sets[i].insert(i, webhooksElement, element(name), "f:"+field)...)
				}
			}
			if len(ops) > before {
				touched = append(touched, i)
			}
		}
	}
	return ops, touched
}

// insert puts the path into the set, with the operations that do the same to the managedFields entry i; none if it is there, or
// if there is no set.
func (s fieldSet) insert(i int, path ...string) []operation {
	if s == nil {
		return nil
	}
	var ops []operation
	at := []string{"fieldsV1"}
	for _, key := range path {
		at = append(at, key)
		if s[key] == nil {
			s[key] = fieldSet{}
			ops = append(ops, add(managedField(i, at...), fieldSet{}))
		}
		s = s[key]
	}
	return ops
}

func managedField(i int, keys ...string) string {
	return pointer(append([]string{"metadata", "managedFields", strconv.Itoa(i)}, keys...)...)
}
