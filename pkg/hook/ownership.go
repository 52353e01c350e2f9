// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

// Names of the two fields as FieldOwner.Fields has them.
const (
	FieldFailurePolicy  = "failurePolicy"
	FieldTimeoutSeconds = "timeoutSeconds"
)

// fieldSet is metadata.managedFields[].fieldsV1: each key is a path element, for example f:webhooks or k:{"name":"a.example.com"}.
type fieldSet map[string]fieldSet

const webhooksElement = "f:webhooks"

func fieldsOf(e metav1.ManagedFieldsEntry) fieldSet {
	var set fieldSet
	if e.FieldsV1 == nil || json.Unmarshal(e.FieldsV1.GetRawBytes(), &set) != nil {
		return nil // the API server writes no other
	}
	return set
}

// element is the path element of a hook, written as the API server writes it.
func element(hookName string) string {
	name, _ := json.Marshal(hookName) // a string always has an encoding
	return `k:{"name":` + string(name) + `}`
}

// of returns which of the two fields of the hook are in the set.
func (s fieldSet) of(hookName string) []string {
	entry := s[webhooksElement][element(hookName)]
	var fields []string
	for _, field := range []string{FieldFailurePolicy, FieldTimeoutSeconds} {
		if _, ok := entry["f:"+field]; ok {
			fields = append(fields, field)
		}
	}
	return fields
}

// Owners returns the field managers other than the guard that own the failure policy or the timeout of the hook, in the order
// of managedFields; a manager's entries for several API versions are one owner.
func (c Configuration) Owners(hookName string) []v1alpha1.FieldOwner {
	var owners []v1alpha1.FieldOwner
	for _, e := range c.ManagedFields {
		fields := fieldsOf(e).of(hookName)
		if e.Manager == v1alpha1.FieldManager || len(fields) == 0 {
			continue
		}
		owner := v1alpha1.FieldOwner{Manager: e.Manager, Operation: e.Operation, Subresource: e.Subresource, Fields: fields}
		if i := slices.IndexFunc(owners, func(o v1alpha1.FieldOwner) bool { return owns(o, e) }); i >= 0 {
			owner.Fields = slices.Compact(slices.Sorted(slices.Values(append(owner.Fields, owners[i].Fields...))))
			owners[i] = owner
			continue
		}
		owners = append(owners, owner)
	}
	return owners
}

func owns(o v1alpha1.FieldOwner, e metav1.ManagedFieldsEntry) bool {
	return o.Manager == e.Manager && o.Operation == e.Operation && o.Subresource == e.Subresource
}

// Ours says whether the guard owns the failure policy and whether it owns the timeout of the hook: whether it was the last to
// change them.
func (c Configuration) Ours(hookName string) (policy, timeout bool) {
	for _, e := range c.ManagedFields {
		if e.Manager != v1alpha1.FieldManager {
			continue
		}
		fields := fieldsOf(e).of(hookName)
		policy = policy || slices.Contains(fields, FieldFailurePolicy)
		timeout = timeout || slices.Contains(fields, FieldTimeoutSeconds)
	}
	return policy, timeout
}

// HasOurEntry says whether the guard has an entry in managedFields.
func (c Configuration) HasOurEntry() bool {
	return slices.ContainsFunc(c.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == v1alpha1.FieldManager })
}

// Managers returns the field managers that own the field at the path, which is written as managedFields does, for example
// f:metadata, f:labels, f:app; in the order of entries, each once.
func Managers(entries []metav1.ManagedFieldsEntry, path ...string) []string {
	var managers []string
	for _, e := range entries {
		set, owned := fieldsOf(e), true
		for _, key := range path {
			if set, owned = set[key]; !owned {
				break
			}
		}
		if owned && !slices.Contains(managers, e.Manager) {
			managers = append(managers, e.Manager)
		}
	}
	return managers
}
