// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

// Patch is a request body for the API server. It is sent with the field manager v1alpha1.FieldManager.
type Patch struct {
	// Type of the patch.
	Type types.PatchType
	// Data is the body; empty when there is nothing to change.
	Data []byte
	// WithoutAnnotation says that the originals had to be left out of an opening patch, because the annotations of the
	// configuration would have become larger than the API allows.
	WithoutAnnotation bool
}

// Empty says that there is nothing to send.
func (p Patch) Empty() bool {
	return len(p.Data) == 0
}

type openBody struct {
	Metadata openMetadata `json:"metadata"`
	Webhooks []openEntry  `json:"webhooks,omitempty"`
}

type openMetadata struct {
	UID             types.UID         `json:"uid"`
	ResourceVersion string            `json:"resourceVersion"`
	Annotations     map[string]string `json:"annotations,omitempty"`
}

type openEntry struct {
	Name           string                                    `json:"name"`
	FailurePolicy  admissionregistrationv1.FailurePolicyType `json:"failurePolicy,omitempty"`
	TimeoutSeconds int32                                     `json:"timeoutSeconds,omitempty"`
}

// OpenPatch returns the strategic merge patch that gives the hooks named in open these values. It carries the uid and the
// resource version of c, so that the API server refuses it when the configuration was changed (409) or re-created (422) in the
// meantime. Of a hook it has only the fields whose value changes.
//
// It sets the annotation to originals, which are those of all open hooks of the configuration, not only of the ones opened now;
// none given, or no room for them: the annotation stays as it is.
//
// The error is about a hook that c does not have or whose name is a duplicate, or about values the API does not accept.
func OpenPatch(c Configuration, open map[string]Values, originals map[string]v1alpha1.Original) (Patch, error) {
	if err := c.check(open); err != nil {
		return Patch{}, fmt.Errorf("failed to open: %w", err)
	}
	body := openBody{Metadata: openMetadata{UID: c.UID, ResourceVersion: c.ResourceVersion}}
	for _, h := range c.Hooks {
		values, ok := open[h.Name]
		if !ok || values == h.Values {
			continue
		}
		entry := openEntry{Name: h.Name}
		if values.Policy != h.Values.Policy {
			entry.FailurePolicy = values.Policy
		}
		if values.Timeout != h.Values.Timeout {
			entry.TimeoutSeconds = values.Timeout
		}
		body.Webhooks = append(body.Webhooks, entry)
	}
	patch := Patch{Type: types.StrategicMergePatchType}
	if len(originals) > 0 {
		value, err := annotationValue(originals)
		if err != nil {
			return Patch{}, err
		}
		patch.WithoutAnnotation = !c.hasRoomFor(value)
		if !patch.WithoutAnnotation && c.Annotations[v1alpha1.OriginalsAnnotation] != value {
			body.Metadata.Annotations = map[string]string{v1alpha1.OriginalsAnnotation: value}
		}
	}
	if len(body.Webhooks) == 0 && len(body.Metadata.Annotations) == 0 {
		return patch, nil
	}
	return patch.with(body)
}

// RestorePatch returns the JSON patch that sets each hook from the values that stand now, and are ours, to its own. A field is
// written only if the two differ, and only if it still has the first value: otherwise the API server refuses the whole patch
// (422), as it does when the configuration was re-created or its entries moved. It carries no resource version, so that a change
// of anything else does not get in its way.
//
// The annotation shrinks to remaining, the originals of the hooks that stay open, or goes with the last of them. With no hooks to
// set, only the annotation is written; if there is nothing to do either, the patch is empty.
//
// The error is about a hook that c does not have, whose name is a duplicate or that is only in one of the two maps, or about
// values the API does not accept.
func RestorePatch(c Configuration, from, to map[string]Values, remaining map[string]v1alpha1.Original) (Patch, error) {
	if err := c.check(to); err != nil {
		return Patch{}, fmt.Errorf("failed to restore: %w", err)
	}
	var ops []operation
	for _, h := range c.Hooks {
		want, ok := to[h.Name]
		if !ok {
			continue
		}
		ours, ok := from[h.Name]
		if !ok {
			return Patch{}, fmt.Errorf("failed to restore: hook %q has no present values", h.Name)
		}
		ops = append(ops, restoreOperations(h, ours, want)...)
	}
	if len(from) != len(to) {
		return Patch{}, fmt.Errorf("failed to restore: present values of %d hooks, own values of %d", len(from), len(to))
	}
	annotation, err := c.annotationOperations(remaining)
	if err != nil {
		return Patch{}, err
	}
	return c.jsonPatch(append(ops, annotation...))
}

func restoreOperations(h Hook, from, to Values) []operation {
	entry := pointer("webhooks", fmt.Sprint(h.Index))
	var ops []operation
	if from.Policy != to.Policy {
		ops = append(ops, test(entry+"/failurePolicy", from.Policy), replace(entry+"/failurePolicy", to.Policy))
	}
	if from.Timeout != to.Timeout {
		ops = append(ops, test(entry+"/timeoutSeconds", from.Timeout), replace(entry+"/timeoutSeconds", to.Timeout))
	}
	if len(ops) == 0 {
		return nil
	}
	return slices.Insert(ops, 0, test(entry+"/name", h.Name))
}

// annotationOperations shrink or remove the annotation; one that is not there is not written.
func (c Configuration) annotationOperations(remaining map[string]v1alpha1.Original) ([]operation, error) {
	present, ok := c.Annotations[v1alpha1.OriginalsAnnotation]
	if !ok {
		return nil, nil
	}
	path := pointer("metadata", "annotations", v1alpha1.OriginalsAnnotation)
	if len(remaining) == 0 {
		return []operation{remove(path)}, nil
	}
	value, err := annotationValue(remaining)
	switch {
	case err != nil:
		return nil, err
	case value == present:
		return nil, nil
	case !c.hasRoomFor(value):
		// Somebody wrote a smaller one and filled the space; a refused annotation must not keep a hook open.
		return []operation{remove(path)}, nil
	}
	return []operation{replace(path, value)}, nil
}

// check returns an error unless each name is that of exactly one hook and its values are within the API's bounds.
func (c Configuration) check(hooks map[string]Values) error {
	for name, values := range hooks {
		h, ok := c.Hook(name)
		if !ok {
			return fmt.Errorf("%s %q has no hook %q", c.Kind, c.Name, name)
		}
		if h.Duplicate {
			return fmt.Errorf("%s %q has more than one hook %q", c.Kind, c.Name, name)
		}
		if _, err := FromOriginal(values.Original()); err != nil {
			return fmt.Errorf("hook %q: %w", name, err)
		}
	}
	return nil
}

func (c Configuration) hasRoomFor(annotation string) bool {
	all := make(map[string]string, len(c.Annotations)+1)
	for k, v := range c.Annotations {
		all[k] = v
	}
	all[v1alpha1.OriginalsAnnotation] = annotation
	return validation.ValidateAnnotationsSize(all) == nil
}

func (p Patch) with(body any) (Patch, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return Patch{}, fmt.Errorf("failed to encode patch: %w", err)
	}
	p.Data = data
	return p, nil
}

// operation is one step of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func test(path string, value any) operation    { return operation{"test", path, value} }
func replace(path string, value any) operation { return operation{"replace", path, value} }
func add(path string, value any) operation     { return operation{"add", path, value} }
func remove(path string) operation             { return operation{Op: "remove", Path: path} }

// jsonPatch is bound to the uid of the configuration: the name alone could belong to a new object.
func (c Configuration) jsonPatch(ops []operation) (Patch, error) {
	patch := Patch{Type: types.JSONPatchType}
	if len(ops) == 0 {
		return patch, nil
	}
	return patch.with(slices.Insert(ops, 0, test("/metadata/uid", c.UID)))
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// pointer joins keys to a JSON pointer (RFC 6901).
func pointer(keys ...string) string {
	var b strings.Builder
	for _, key := range keys {
		b.WriteByte('/')
		b.WriteString(pointerEscapes.Replace(key))
	}
	return b.String()
}
