// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"testing"

	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

func TestMetricsShowAShootAsLongAsItHasTheExtension(t *testing.T) {
	s := newShoot(t)
	windows := s.window().GetSampleCount()
	s.hibernates()
	s.Eventually(s.shown).Should(Equal(map[string]float64{"hooks_open": 3, "hooks_still_open": 0, "gate_closed": 0}))
	s.wakesUp()
	s.nodesJoin()
	s.Eventually(s.shown).Should(Equal(map[string]float64{"hooks_open": 0, "hooks_still_open": 0, "gate_closed": 0}))
	// Other stories may add to the histogram, which has no label for the Shoot.
	s.Expect(s.window().GetSampleCount()).To(BeNumerically(">=", windows+3))
	s.Expect(s.total("writes_total", "action", "Restore")).To(BeNumerically(">=", 2))
	s.Expect(s.total("passes_total", "phase", "WakingUp")).To(BeNumerically(">=", 2))

	s.Eventually(s.changed).Should(BeEmpty())
	s.flowBegins(false)
	s.disabled()
	s.Eventually(s.find).Should(BeNil())
	s.Eventually(s.shown).Should(BeEmpty())
}

func TestMetricsCountHooksThatWaitForAPerson(t *testing.T) {
	s := wakesUpWithADeadHook(t, oneMinute, false)
	s.Eventually(s.shown).Should(Equal(map[string]float64{"hooks_open": 1, "hooks_still_open": 1, "gate_closed": 0}))
	s.comesBack("dead")
	s.nudge() // instead of five minutes
	s.Eventually(s.shown).Should(Equal(map[string]float64{"hooks_open": 0, "hooks_still_open": 0, "gate_closed": 0}))
}

const metricPrefix = "shoot_hibernation_guard_"

func (s *theShoot) metric(name string) []*dto.Metric {
	families, err := metrics.Registry.Gather()
	s.Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		if family.GetName() == metricPrefix+name {
			return family.GetMetric()
		}
	}
	return nil
}

// shown are the values of the metrics that have a series of this Shoot.
func (s *theShoot) shown() map[string]float64 {
	out := map[string]float64{}
	for _, name := range []string{"hooks_open", "hooks_still_open", "gate_closed"} {
		for _, m := range s.metric(name) {
			if m.GetLabel()[0].GetValue() == s.name {
				out[name] = m.GetGauge().GetValue()
			}
		}
	}
	return out
}

func (s *theShoot) total(name, label, value string) (sum float64) {
	for _, m := range s.metric(name) {
		for _, l := range m.GetLabel() {
			if l.GetName() == label && l.GetValue() == value {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

func (s *theShoot) window() *dto.Histogram { return s.metric("window_seconds")[0].GetHistogram() }
