// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FieldPaths are the paths of all fields that a type has in JSON, without those of its TypeMeta: ".care.syncPeriod",
// ".webhooks[].action". Each begins with path.
func FieldPaths(t reflect.Type, path string) (paths []string) {
	switch {
	case t.Kind() == reflect.Pointer:
		return FieldPaths(t.Elem(), path)
	case t.Kind() == reflect.Slice:
		return FieldPaths(t.Elem(), path+"[]")
	case t.Kind() != reflect.Struct || t == reflect.TypeFor[metav1.Duration]():
		return []string{path}
	}
	for field := range t.Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			paths = append(paths, FieldPaths(field.Type, path+"."+name)...)
		}
	}
	return paths
}
