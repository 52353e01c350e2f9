// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	guardv1alpha1 "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

var stateKind = guardv1alpha1.SchemeGroupVersion.WithKind("GuardState")

// DecodeState decodes the record in an Extension's status.state. Nil and empty give a state without hooks at
// StateRevision. Unknown fields are ignored.
//
// newer says that a later binary wrote the record: what is understood is returned and may be restored, but the state must
// not be written. An error means the same, for a record that was damaged: it names what could not be decoded, and the
// state, never nil, holds the hooks and claims that could. It must not be taken for a record of all that is open.
func DecodeState(raw *runtime.RawExtension) (state *guardv1alpha1.GuardState, newer bool, err error) {
	state = &guardv1alpha1.GuardState{TypeMeta: typeMeta(stateKind), Revision: guardv1alpha1.StateRevision}
	data, err := bytesOf(raw)
	if err != nil || len(data) == 0 {
		return state, false, err
	}
	var parts struct {
		metav1.TypeMeta `json:",inline"`
		Revision        json.RawMessage            `json:"revision"`
		Cycle           json.RawMessage            `json:"cycle"`
		Hooks           map[string]json.RawMessage `json:"hooks"`
		Claims          map[string]json.RawMessage `json:"claims"`
		LastGoodConfig  json.RawMessage            `json:"lastGoodConfig"`
	}
	if err := utiljson.Unmarshal(data, &parts); err != nil {
		return state, false, fmt.Errorf("failed to decode GuardState: %w", err)
	}
	kind := parts.GroupVersionKind()
	if kind.GroupKind() != stateKind.GroupKind() {
		return state, false, fmt.Errorf("failed to decode GuardState: the record is of the kind %s", kind)
	}

	state.Revision = 0
	errs := []error{
		decodePart("revision", parts.Revision, &state.Revision),
		decodePart("cycle", parts.Cycle, &state.Cycle),
		decodePart("lastGoodConfig", parts.LastGoodConfig, &state.LastGoodConfig),
	}
	var hookErrs, claimErrs []error
	state.Hooks, hookErrs = decodeEntries[guardv1alpha1.HookRecord]("hooks", parts.Hooks)
	state.Claims, claimErrs = decodeEntries[guardv1alpha1.Claim]("claims", parts.Claims)
	errs = append(append(errs, hookErrs...), claimErrs...)
	if state.Revision < 1 {
		errs = append(errs, fmt.Errorf("failed to decode GuardState: revision: %d is less than 1", state.Revision))
	}
	newer = state.Revision > guardv1alpha1.StateRevision || kind.Version != stateKind.Version
	return state, newer, errors.Join(errs...)
}

// decodeEntries decodes a map entry by entry: what is wrong with one must not cost another its record.
func decodeEntries[T any](name string, parts map[string]json.RawMessage) (map[string]T, []error) {
	var entries map[string]T
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(parts)) {
		var entry *T
		where := fmt.Sprintf("%s[%q]", name, key)
		if err := decodePart(where, parts[key], &entry); err != nil {
			errs = append(errs, err)
		} else if entry == nil {
			errs = append(errs, fmt.Errorf("failed to decode GuardState: %s: the record is empty", where))
		} else {
			if entries == nil {
				entries = map[string]T{}
			}
			entries[key] = *entry
		}
	}
	return entries, errs
}

// decodePart leaves into as it is if data is absent or cannot be decoded.
func decodePart[T any](name string, data json.RawMessage, into *T) error {
	if len(data) == 0 {
		return nil
	}
	var part T
	if err := utiljson.Unmarshal(data, &part); err != nil {
		return fmt.Errorf("failed to decode GuardState: %s: %w", name, err)
	}
	*into = part
	return nil
}

// EncodeState encodes state as a record of this binary's StateRevision. A record of a later binary is an error: it would
// lose what this one does not know.
func EncodeState(state *guardv1alpha1.GuardState) (*runtime.RawExtension, error) {
	if state.Revision > guardv1alpha1.StateRevision {
		return nil, fmt.Errorf("failed to encode GuardState: revision %d is newer than %d", state.Revision, guardv1alpha1.StateRevision)
	}
	out := *state
	out.TypeMeta = typeMeta(stateKind)
	out.Revision = guardv1alpha1.StateRevision
	data, err := json.Marshal(&out)
	if err != nil {
		return nil, fmt.Errorf("failed to encode GuardState: %w", err)
	}
	return &runtime.RawExtension{Raw: data}, nil
}
