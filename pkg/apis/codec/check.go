// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	guardv1alpha1 "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	guardvalidation "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/validation"
)

// CheckConfig finds everything that is wrong with the providerConfig of the extension, which stands at path: what DecodeConfig
// refuses, and what contradicts itself. It is for a person who is about to set it; the controller goes by DecodeConfig, which
// lets contradictions pass.
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
	want := typeMeta(guardv1alpha1.SchemeGroupVersion.WithKind("GuardConfig"))
	if errs := checkHeader(fields, want.APIVersion, want.Kind, path); len(errs) > 0 {
		return errs
	}
	errs := checkDurations(fields, path, configDurations)
	config, decodeErrs := decodeFields(fields, path)
	errs = append(errs, decodeErrs...)
	if config == nil {
		return errs
	}
	errs = append(errs, guardvalidation.ValidateGuardConfig(config, path)...)
	return append(errs, guardvalidation.FindContradictions(config, path)...)
}

func checkHeader(fields map[string]any, apiVersion, kind string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, want := range map[string]string{"apiVersion": apiVersion, "kind": kind} {
		switch fields[name] {
		case want:
		case nil:
			errs = append(errs, field.Required(path.Child(name), fmt.Sprintf("set it to %q", want)))
		default:
			errs = append(errs, field.NotSupported(path.Child(name), fields[name], []string{want}))
		}
	}
	return errs
}

// unknownField is how the decoder names a field that it does not know, or that is there twice.
var unknownField = regexp.MustCompile(`^unknown field "(.+)"$`)

// decodeFields decodes what is left of the fields. Unknown ones are named and do not keep the rest from being looked at.
func decodeFields(fields map[string]any, path *field.Path) (*guardv1alpha1.GuardConfig, field.ErrorList) {
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	object, _, err := strictDecoder.Decode(data, nil, nil)
	var errs field.ErrorList
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		for _, err := range strict.Errors() {
			if found := unknownField.FindStringSubmatch(err.Error()); found != nil {
				errs = append(errs, field.Forbidden(path.Child(found[1]), "there is no such field, remove it or correct its name"))
				continue
			}
			errs = append(errs, field.Invalid(path, field.OmitValueType{}, err.Error()))
		}
	} else if err != nil {
		var wrongType *json.UnmarshalTypeError
		if errors.As(err, &wrongType) {
			return nil, field.ErrorList{field.Invalid(path.Child(strings.TrimPrefix(wrongType.Field, ".")), wrongType.Value, "write a value of the type "+wrongType.Type.String())}
		}
		return nil, field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	config, ok := object.(*guardv1alpha1.GuardConfig)
	if !ok {
		return nil, errs
	}
	scheme.Default(config)
	return config, errs
}
