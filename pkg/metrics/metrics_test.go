// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/utils/ptr"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/decide"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/metrics"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
)

// shoots are the metrics that have a series per Shoot.
var shoots = []string{"shoot_hibernation_guard_hooks_open", "shoot_hibernation_guard_hooks_still_open", "shoot_hibernation_guard_gate_closed"}

// series compares the lines of metrics without their HELP and TYPE.
func series(t *testing.T, want string, names ...string) {
	t.Helper()
	g := NewWithT(t)
	families, err := registry.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	var header strings.Builder
	for _, family := range families {
		if strings.Contains(want, family.GetName()) {
			header.WriteString("# HELP " + family.GetName() + " " + family.GetHelp() + "\n# TYPE " + family.GetName() + " " +
				strings.ToLower(family.GetType().String()) + "\n")
		}
	}
	g.Expect(testutil.GatherAndCompare(registry.Registry, strings.NewReader(header.String()+want), names...)).To(Succeed())
}

func TestSeriesOfAShootVanishWithIt(t *testing.T) {
	metrics.Show("shoot--a--one", metrics.Shoot{Open: 3, StillOpen: 1, GateClosed: ptr.To(true)})
	metrics.Show("shoot--a--two", metrics.Shoot{GateClosed: ptr.To(false)})
	two := `
shoot_hibernation_guard_hooks_open{shoot_namespace="shoot--a--two"} 0
shoot_hibernation_guard_hooks_still_open{shoot_namespace="shoot--a--two"} 0
shoot_hibernation_guard_gate_closed{shoot_namespace="shoot--a--two"} 0
`
	series(t, `
shoot_hibernation_guard_hooks_open{shoot_namespace="shoot--a--one"} 3
shoot_hibernation_guard_hooks_still_open{shoot_namespace="shoot--a--one"} 1
shoot_hibernation_guard_gate_closed{shoot_namespace="shoot--a--one"} 1
`+two, shoots...)
	metrics.Forget("shoot--a--one")
	series(t, two, shoots...)
	metrics.Forget("shoot--a--two")
	series(t, "", shoots...)
}

func TestGateThatIsNotJudgedAnyMoreIsNotShown(t *testing.T) {
	metrics.Show("shoot--a--one", metrics.Shoot{GateClosed: ptr.To(true)})
	metrics.Show("shoot--a--one", metrics.Shoot{})
	series(t, "", "shoot_hibernation_guard_gate_closed")
	metrics.Forget("shoot--a--one")
}

func TestCounters(t *testing.T) {
	metrics.CountPass(phase.WakingUp, metrics.Succeeded)
	metrics.CountPass(phase.WakingUp, metrics.Succeeded)
	metrics.CountPass("", metrics.Failed)
	metrics.CountWrite(decide.OpenIt)
	metrics.ObserveWindow(90 * time.Second)
	series(t, `
shoot_hibernation_guard_passes_total{outcome="Failed",phase="Unknown"} 1
shoot_hibernation_guard_passes_total{outcome="Succeeded",phase="WakingUp"} 2
`, "shoot_hibernation_guard_passes_total")
	series(t, `
shoot_hibernation_guard_writes_total{action="Open"} 1
`, "shoot_hibernation_guard_writes_total")
	series(t, `
shoot_hibernation_guard_window_seconds_bucket{le="15"} 0
shoot_hibernation_guard_window_seconds_bucket{le="30"} 0
shoot_hibernation_guard_window_seconds_bucket{le="60"} 0
shoot_hibernation_guard_window_seconds_bucket{le="120"} 1
shoot_hibernation_guard_window_seconds_bucket{le="300"} 1
shoot_hibernation_guard_window_seconds_bucket{le="600"} 1
shoot_hibernation_guard_window_seconds_bucket{le="1200"} 1
shoot_hibernation_guard_window_seconds_bucket{le="1800"} 1
shoot_hibernation_guard_window_seconds_bucket{le="3600"} 1
shoot_hibernation_guard_window_seconds_bucket{le="+Inf"} 1
shoot_hibernation_guard_window_seconds_sum 90
shoot_hibernation_guard_window_seconds_count 1
`, "shoot_hibernation_guard_window_seconds")
}

func TestNamesAreWellFormedAndExplained(t *testing.T) {
	g := NewWithT(t)
	metrics.Show("shoot--a--one", metrics.Shoot{GateClosed: ptr.To(true)})
	metrics.CountPass(phase.Awake, metrics.Succeeded)
	metrics.CountWrite(decide.RestoreIt)
	families, err := registry.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	docs, err := os.ReadFile("../../docs/operations/metrics.md")
	g.Expect(err).NotTo(HaveOccurred())
	var ours []string
	for _, family := range families {
		if strings.HasPrefix(family.GetName(), "shoot_hibernation_guard_") {
			ours = append(ours, family.GetName())
			g.Expect(string(docs)).To(ContainSubstring("## `"+family.GetName()+"`\n"), "a heading of its own")
		}
	}
	g.Expect(ours).To(HaveLen(6))
	g.Expect(strings.Count(string(docs), "\n## `shoot_hibernation_guard_")).To(Equal(len(ours)), "no metric that does not exist")
	problems, err := testutil.GatherAndLint(registry.Registry, ours...)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(problems).To(BeEmpty())
	metrics.Forget("shoot--a--one")
}
