// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

// about is for the person who finds the annotation.
const about = "Set fail-open while the cluster sleeps and wakes up. These are the hooks' own values; each is given back when its backend answers."

// maxNamed bounds how many hooks an error about an annotation names.
const maxNamed = 10

// maxNameLength is the longest name the API accepts for a hook, in bytes.
const maxNameLength = 253

// Original is v as it goes on record.
func (v Values) Original() v1alpha1.Original {
	return v1alpha1.Original{FailurePolicy: v.Policy, TimeoutSeconds: v.Timeout}
}

// FromOriginal returns the values of an original that comes from a place others can write to. The error says what is wrong with
// it if it is not Fail or Ignore with 1 to 30 seconds.
func FromOriginal(o v1alpha1.Original) (Values, error) {
	if o.FailurePolicy != admissionregistrationv1.Fail && o.FailurePolicy != admissionregistrationv1.Ignore {
		return Values{}, fmt.Errorf("failurePolicy is neither Fail nor Ignore")
	}
	if o.TimeoutSeconds < MinTimeout || o.TimeoutSeconds > MaxTimeout {
		return Values{}, fmt.Errorf("timeoutSeconds is not between %d and %d", MinTimeout, MaxTimeout)
	}
	return Values{Policy: o.FailurePolicy, Timeout: o.TimeoutSeconds}, nil
}

// Originals returns what the annotation says the hooks' own values are; nothing and no error without the annotation. Anybody can
// write it: only Fail or Ignore with 1 to 30 seconds is returned. The error names the hooks, at most ten, for which it says
// something else; the others are returned all the same.
func (c Configuration) Originals() (v1alpha1.Originals, error) {
	value, ok := c.Annotations[v1alpha1.OriginalsAnnotation]
	if !ok {
		return v1alpha1.Originals{}, nil
	}
	var raw struct {
		// Entry by entry: what is wrong with one must not cost another its original.
		Hooks map[string]json.RawMessage `json:"hooks"`
	}
	if err := json.Unmarshal([]byte(value), &raw); err != nil {
		return v1alpha1.Originals{}, fmt.Errorf("failed to decode annotation %s: %w", v1alpha1.OriginalsAnnotation, err)
	}
	good := v1alpha1.Originals{About: about, Hooks: make(map[string]v1alpha1.Original, len(raw.Hooks))}
	var bad []string
	for _, name := range slices.Sorted(maps.Keys(raw.Hooks)) {
		var original v1alpha1.Original
		err := json.Unmarshal(raw.Hooks[name], &original)
		if err == nil {
			_, err = FromOriginal(original)
		}
		if err != nil {
			bad = append(bad, fmt.Sprintf("%.*q: %v", maxNameLength, name, err))
			continue
		}
		good.Hooks[name] = original
	}
	if len(bad) == 0 {
		return good, nil
	}
	more := ""
	if len(bad) > maxNamed {
		bad, more = bad[:maxNamed], fmt.Sprintf(" and %d more", len(bad)-maxNamed)
	}
	return good, fmt.Errorf("failed to accept originals of annotation %s: %s%s",
		v1alpha1.OriginalsAnnotation, strings.Join(bad, ", "), more)
}

func annotationValue(originals map[string]v1alpha1.Original) (string, error) {
	data, err := json.Marshal(v1alpha1.Originals{About: about, Hooks: originals})
	if err != nil {
		return "", fmt.Errorf("failed to encode originals: %w", err)
	}
	return string(data), nil
}
