// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package codec turns bytes into the project's API types and back: configuration strictly, the guard's own record leniently.
package codec

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/config/v1alpha1"
	guardv1alpha1 "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

var (
	scheme        = newScheme()
	strictDecoder = serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(guardv1alpha1.AddToScheme(s))
	utilruntime.Must(configv1alpha1.AddToScheme(s))
	return s
}

// typeMeta is the header of an object of the given kind.
func typeMeta(kind schema.GroupVersionKind) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind}
}

// decodeStrict decodes data, JSON or YAML, as an object of the given kind and applies its defaults; no data at all means
// all defaults. The error names every unknown field and every field whose value has the wrong type.
func decodeStrict(data []byte, kind schema.GroupVersionKind) (runtime.Object, error) {
	var fields map[string]any
	if err := yaml.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("failed to decode %s: %w", kind.Kind, err)
	}
	object, err := scheme.New(kind)
	if err != nil {
		return nil, fmt.Errorf("failed to create %s: %w", kind.Kind, err)
	}
	if fields == nil {
		object.GetObjectKind().SetGroupVersionKind(kind)
		scheme.Default(object)
		return object, nil
	}
	want := typeMeta(kind)
	if fields["apiVersion"] != want.APIVersion || fields["kind"] != want.Kind {
		return nil, fmt.Errorf("failed to decode %s: set apiVersion to %q and kind to %q (found %v and %v)",
			kind.Kind, want.APIVersion, want.Kind, quoted(fields["apiVersion"]), quoted(fields["kind"]))
	}
	if _, errs := fit(reflect.TypeOf(object), fields, nil); len(errs) > 0 {
		return nil, fmt.Errorf("failed to decode %s: %w", kind.Kind, errs.ToAggregate())
	}
	if object, _, err = strictDecoder.Decode(data, nil, nil); err != nil {
		return nil, fmt.Errorf("failed to decode %s: %w", kind.Kind, err)
	}
	scheme.Default(object)
	return object, nil
}

func quoted(value any) string {
	if value == nil {
		return "none"
	}
	return fmt.Sprintf("%q", fmt.Sprint(value))
}
