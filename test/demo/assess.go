// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

// findings are what is not as it was before.
type findings struct {
	lost, changed, left int
	lines               []string
}

// assess sorts what is different after the run, what the guard left, what it wrote that is none of its business, and
// what is still on its record.
func assess(differences, leftovers []bench.Difference, foreign, record []string) findings {
	f := findings{changed: len(foreign), left: len(leftovers) + len(record)}
	f.lines = append(append([]string{}, foreign...), record...)
	for _, d := range leftovers {
		f.lines = append(f.lines, d.String())
	}
	for _, d := range differences {
		switch {
		case d.Field == bench.FieldAnnotation, strings.HasPrefix(d.Field, bench.FieldManaged+v1alpha1.FieldManager+"/"):
			continue // among the leftovers
		case d.Field == bench.FieldCABundle && len(foreign) == 0:
			continue // the guard did not write it, so its owner did
		case d.Field == bench.FieldFailurePolicy, d.Field == bench.FieldTimeoutSeconds, d.Field == bench.FieldPresence && d.After == "":
			f.lost++
		default:
			f.changed++
		}
		f.lines = append(f.lines, d.String())
	}
	return f
}
