// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/codec"
	configv1alpha1 "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/config/v1alpha1"
	charttest "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/charts"
)

func TestEveryValueReachesAnObject(t *testing.T) {
	eachValueTakesEffect(t, charttest.Extension)
}

func TestValuesThatAreNotKnownAreRefused(t *testing.T) {
	unknownValuesAreRefused(t, charttest.Extension, "resources", "resources.requests", "vpa.minAllowed")
}

func TestControllerConfigurationIsValidWhateverIsChanged(t *testing.T) {
	for path, variant := range charttest.Extension.Variants(t) {
		_, err := codec.DecodeControllerConfiguration([]byte(one[*corev1.ConfigMap](t, render(t, variant)).Data["config.yaml"]))
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), path)
	}
}

func TestValuesNameEveryFieldOfTheConfiguration(t *testing.T) {
	g := NewWithT(t)
	var named []string
	for path := range charttest.Extension.Variants(t) {
		if field, ok := strings.CutPrefix(path, "config"); ok {
			named = append(named, field)
		}
	}
	g.Expect(named).To(ConsistOf(charttest.FieldPaths(reflect.TypeFor[configv1alpha1.ControllerConfiguration](), "")))
}

// eachValueTakesEffect changes each value of the chart in turn and compares what is rendered.
func eachValueTakesEffect(t *testing.T, chart charttest.Chart) {
	g := NewWithT(t)
	before, err := chart.TryRender(nil)
	g.Expect(err).NotTo(HaveOccurred())
	variants := chart.Variants(t)
	g.Expect(variants).NotTo(BeEmpty())
	for path, variant := range variants {
		after, err := chart.TryRender(variant)
		g.Expect(err).NotTo(HaveOccurred(), path)
		g.Expect(maps.Equal(after, before)).To(BeFalse(), "nothing changes with "+path)
	}
}

// unknownValuesAreRefused adds a value that does not exist to each map of the chart's values but those that are free, and the
// top level, where Gardener adds some.
func unknownValuesAreRefused(t *testing.T, chart charttest.Chart, free ...string) {
	g := NewWithT(t)
	parents := map[string]bool{}
	for path := range chart.Variants(t) {
		keys := strings.Split(path, ".")
		for i := 1; i < len(keys); i++ {
			parents[strings.Join(keys[:i], ".")] = true
		}
	}
	g.Expect(parents).NotTo(BeEmpty())
	for parent := range parents {
		values := charttest.Values{"misspelled": true}
		for _, key := range slices.Backward(strings.Split(parent, ".")) {
			values = charttest.Values{key: values}
		}
		_, err := chart.TryRender(values)
		if slices.Contains(free, parent) {
			g.Expect(err).NotTo(HaveOccurred(), parent)
			continue
		}
		g.Expect(err).To(MatchError(ContainSubstring("misspelled")), parent)
	}
}
