// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// fit compares a decoded value, which stands at path, with the Go type that is to hold it. It names all fields that the type
// does not have and all values that it cannot hold, where the decoder names the first, without its index in a list. What it
// returns is the value without them; lists keep their length.
func fit(t reflect.Type, value any, path *field.Path) (any, field.ErrorList) {
	switch {
	case value == nil:
		return nil, nil
	case t.Kind() == reflect.Pointer:
		return fit(t.Elem(), value, path)
	case t == reflect.TypeFor[metav1.Duration]():
		text, ok := value.(string)
		if _, err := time.ParseDuration(text); err != nil || !ok {
			return misfit(path, value, `write a number and a unit, for example "90s", "10m" or "1h30m"`)
		}
		return value, nil
	case t.Kind() == reflect.Struct:
		return fitFields(fieldsOf(t), value, path)
	case t.Kind() == reflect.Slice:
		return fitList(t.Elem(), value, path)
	}
	data, err := json.Marshal(value)
	if err != nil || json.Unmarshal(data, reflect.New(t).Interface()) != nil {
		return misfit(path, value, "write "+inWords(t))
	}
	return value, nil
}

func fitFields(types map[string]reflect.Type, value any, path *field.Path) (any, field.ErrorList) {
	fields, ok := value.(map[string]any)
	if !ok {
		return misfit(path, value, "write an object with the fields "+names(types))
	}
	var errs field.ErrorList
	fitting := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		t, known := types[name]
		if !known {
			errs = append(errs, field.Forbidden(path.Child(name), "there is no such field, remove it or correct its name to one of "+names(types)))
			continue
		}
		fits, err := fit(t, fields[name], path.Child(name))
		fitting[name], errs = fits, append(errs, err...)
	}
	return fitting, errs
}

func fitList(t reflect.Type, value any, path *field.Path) (any, field.ErrorList) {
	list, ok := value.([]any)
	if !ok {
		return misfit(path, value, "write a list")
	}
	var errs field.ErrorList
	fitting := make([]any, len(list))
	for i, item := range list {
		fits, err := fit(t, item, path.Index(i))
		fitting[i], errs = fits, append(errs, err...)
	}
	return fitting, errs
}

func misfit(path *field.Path, value any, remedy string) (any, field.ErrorList) {
	switch value.(type) {
	case map[string]any, []any:
		value = field.OmitValueType{} // it would be printed as Go code
	}
	return nil, field.ErrorList{field.Invalid(path, value, remedy)}
}

// fieldsOf are the types of the fields of a struct, those of its TypeMeta too, by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields[name] = f.Type
		}
	}
	return fields
}

// names are those of the fields that a person would set, in the order of the alphabet.
func names(types map[string]reflect.Type) string {
	return strings.Join(slices.DeleteFunc(slices.Sorted(maps.Keys(types)), func(name string) bool {
		return name == "apiVersion" || name == "kind"
	}), ", ")
}

func inWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return fmt.Sprintf("a value of the type %s", t)
	}
}
