// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

// Values of Difference.Field that are told apart.
const (
	FieldFailurePolicy  = "failurePolicy"
	FieldTimeoutSeconds = "timeoutSeconds"
	FieldCABundle       = "clientConfig.caBundle"
	// FieldAnnotation is the guard's own.
	FieldAnnotation = "metadata.annotations." + v1alpha1.OriginalsAnnotation
	// FieldManaged begins the name of a managedFields entry, which ends with manager, operation and subresource.
	FieldManaged = "metadata.managedFields."
	// FieldPresence is that of a whole hook or configuration.
	FieldPresence = "presence"
)

// Difference is a field that is not as it was. Before and After are JSON, or empty for a field that is not there.
type Difference struct {
	HookID
	Field, Before, After string
}

func (d Difference) String() string {
	return fmt.Sprintf("%s %s: %q, before %q", d.HookID, d.Field, d.After, d.Before)
}

// Snapshot is the content of all webhook configurations at a time: each field with its value, by the hook, or by the
// configuration for what is outside of its hooks. Left out is only what changes with every write: resourceVersion,
// generation, the times in managedFields, and what a claim is: its label, and the entry of its manager in managedFields.
type Snapshot struct {
	fields map[HookID]map[string]string
}

// Snapshot reads all webhook configurations of the Shoot.
func (b *Bench) Snapshot(ctx context.Context) (Snapshot, error) {
	s := Snapshot{fields: map[HookID]map[string]string{}}
	validating := &admissionregistrationv1.ValidatingWebhookConfigurationList{}
	mutating := &admissionregistrationv1.MutatingWebhookConfigurationList{}
	for _, list := range []client.ObjectList{validating, mutating} {
		if err := b.Shoot.Client().List(ctx, list); err != nil {
			return s, fmt.Errorf("failed to list webhook configurations: %w", err)
		}
	}
	for i := range validating.Items {
		if err := s.add(KindValidating, &validating.Items[i]); err != nil {
			return s, err
		}
	}
	for i := range mutating.Items {
		if err := s.add(KindMutating, &mutating.Items[i]); err != nil {
			return s, err
		}
	}
	return s, nil
}

// Hooks are the hooks of the snapshot, sorted.
func (s Snapshot) Hooks() []HookID {
	return slices.SortedFunc(func(yield func(HookID) bool) {
		for id := range s.fields {
			if id.Hook != "" && !yield(id) {
				return
			}
		}
	}, compareHooks)
}

// Diff returns what is not in after as it is in s, sorted.
func (s Snapshot) Diff(after Snapshot) []Difference {
	var differences []Difference
	ids := map[HookID]bool{}
	for _, all := range []Snapshot{s, after} {
		for id := range all.fields {
			ids[id] = true
		}
	}
	for id := range ids {
		before, now := s.fields[id], after.fields[id]
		if before == nil || now == nil {
			differences = append(differences, Difference{id, FieldPresence, before[FieldPresence], now[FieldPresence]})
			continue
		}
		names := maps.Clone(before)
		maps.Copy(names, now)
		for field := range names {
			if before[field] != now[field] {
				differences = append(differences, Difference{id, field, before[field], now[field]})
			}
		}
	}
	return sorted(differences)
}

// Leftovers are what the guard left behind: its annotation, and the entries of its manager in managedFields. Before is
// empty.
func (s Snapshot) Leftovers() []Difference {
	var left []Difference
	for id, fields := range s.fields {
		for field, value := range fields {
			if field == FieldAnnotation || strings.HasPrefix(field, FieldManaged+v1alpha1.FieldManager+"/") {
				left = append(left, Difference{HookID: id, Field: field, After: value})
			}
		}
	}
	return sorted(left)
}

func sorted(differences []Difference) []Difference {
	slices.SortFunc(differences, func(a, b Difference) int {
		return cmp.Or(compareHooks(a.HookID, b.HookID), cmp.Compare(a.Field, b.Field))
	})
	return differences
}

func (s Snapshot) add(kind string, configuration client.Object) error {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(configuration)
	if err != nil {
		return fmt.Errorf("failed to convert %s %s: %w", kind, configuration.GetName(), err)
	}
	id := HookID{Kind: kind, Configuration: configuration.GetName()}
	whole := map[string]string{FieldPresence: "true"}
	s.fields[id] = whole
	metadata, _ := object["metadata"].(map[string]any)
	if labels, _ := metadata["labels"].(map[string]any); labels[v1alpha1.ClaimLabel] == v1alpha1.ClaimValue {
		delete(labels, v1alpha1.ClaimLabel)
	}
	for field, value := range metadata {
		switch field {
		case "resourceVersion", "generation", "managedFields":
		case "labels", "annotations":
			flatten(whole, "metadata."+field+".", value)
		default:
			whole["metadata."+field] = encode(value)
		}
	}
	addManagedFields(whole, configuration.GetManagedFields())
	hooks, _ := object["webhooks"].([]any)
	var order []string
	for _, hook := range hooks {
		entry, _ := hook.(map[string]any)
		name, _ := entry["name"].(string)
		order = append(order, name)
		fields := map[string]string{FieldPresence: "true"}
		s.fields[HookID{kind, id.Configuration, name}] = fields
		for field, value := range entry {
			if field == "clientConfig" {
				flatten(fields, "clientConfig.", value)
			} else {
				fields[field] = encode(value)
			}
		}
	}
	whole["webhooks"] = encode(order)
	return nil
}

func addManagedFields(fields map[string]string, entries []metav1.ManagedFieldsEntry) {
	for _, e := range entries {
		if e.Manager == v1alpha1.ClaimFieldManager {
			continue
		}
		name := FieldManaged + e.Manager + "/" + string(e.Operation)
		if e.Subresource != "" {
			name += "/" + e.Subresource
		}
		owned := ""
		if e.FieldsV1 != nil {
			// An owner that puts the label on itself, as Kyverno does at our word, owns it.
			owned = strings.ReplaceAll(e.FieldsV1.String(), `"f:`+v1alpha1.ClaimLabel+`":{},`, "")
		}
		fields[name] += owned // one entry for each API version
	}
}

func flatten(fields map[string]string, prefix string, value any) {
	entries, _ := value.(map[string]any)
	for key, value := range entries {
		fields[prefix+key] = encode(value)
	}
}

func encode(value any) string {
	if value == nil || reflect.ValueOf(value).IsZero() {
		return ""
	}
	content, _ := json.Marshal(value) // it was decoded from JSON
	return string(content)
}
