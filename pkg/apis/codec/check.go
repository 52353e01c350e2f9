// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	guardv1alpha1 "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	guardvalidation "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/validation"
)

// CheckConfig finds everything at once that is wrong with the providerConfig of the extension, which stands at path: what
// DecodeConfig refuses, and what contradicts itself. It is for a person who is about to set it; the controller goes by
// DecodeConfig, which lets contradictions pass: what they mean is defined, and to refuse them would put the last good config or
// the defaults in the place of a config that has worked.
func CheckConfig(raw *runtime.RawExtension, path *field.Path) field.ErrorList {
	data, err := bytesOf(raw)
	if err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	var fields map[string]any
	if err := yaml.Unmarshal(data, &fields); err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "write an object of the kind GuardConfig: "+err.Error())}
	}
	if fields == nil {
		return nil
	}
	errs, ours := checkHeader(fields, path)
	if !ours {
		return errs
	}
	fitting, misfits := fit(reflect.TypeFor[guardv1alpha1.GuardConfig](), fields, path)
	config := &guardv1alpha1.GuardConfig{}
	if data, err := json.Marshal(fitting); err != nil || json.Unmarshal(data, config) != nil {
		return append(append(errs, misfits...), field.Invalid(path, field.OmitValueType{}, "it cannot be decoded as GuardConfig"))
	}
	scheme.Default(config)
	for _, err := range guardvalidation.ValidateGuardConfig(config, path) {
		if !touches(misfits, err.Field) {
			errs = append(errs, err)
		}
	}
	if len(misfits) > 0 {
		return append(errs, misfits...)
	}
	errs = append(errs, guardvalidation.FindContradictions(config, path)...)
	return append(errs, checkTwice(data, path)...)
}

// checkHeader checks apiVersion and kind. What says that it is of another kind is not ours to look into.
func checkHeader(fields map[string]any, path *field.Path) (errs field.ErrorList, ours bool) {
	want := typeMeta(guardv1alpha1.SchemeGroupVersion.WithKind("GuardConfig"))
	ours = true
	for _, header := range []struct{ name, want string }{{"apiVersion", want.APIVersion}, {"kind", want.Kind}} {
		switch found := fields[header.name]; found {
		case header.want:
		case nil:
			errs = append(errs, field.Required(path.Child(header.name), fmt.Sprintf("set it to %q", header.want)))
		default:
			ours = false
			errs = append(errs, field.NotSupported(path.Child(header.name), fmt.Sprint(found), []string{header.want}))
		}
	}
	return errs, ours
}

// touches says whether one of the errors is about the field, something in it, or what it is in: a value that had to be left
// out is not to be called missing.
func touches(errs field.ErrorList, path string) bool {
	within := func(a, b string) bool { return a == b || strings.HasPrefix(a, b+".") || strings.HasPrefix(a, b+"[") }
	return slices.ContainsFunc(errs, func(err *field.Error) bool { return within(err.Field, path) || within(path, err.Field) })
}

// checkTwice finds fields that are there more than once, of which only the strict decoder knows.
func checkTwice(data []byte, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	_, _, err := strictDecoder.Decode(data, nil, nil)
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		for _, err := range strict.Errors() {
			errs = append(errs, field.Invalid(path, field.OmitValueType{}, "write each field once: "+err.Error()))
		}
	}
	return errs
}
