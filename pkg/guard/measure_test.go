// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/decide"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/metrics"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
)

func TestWindowBeginsWithTheWakeUpOrTheOpening(t *testing.T) {
	now := time.Date(2026, 8, 1, 6, 10, 0, 0, time.UTC)
	ago := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-d)} }
	for name, test := range map[string]struct {
		opened, returned *metav1.Time
		want             float64 // seconds; 0: none is observed
	}{
		"opened before the sleep":               {ago(10 * time.Hour), ago(0), 600},
		"opened after the wake-up began":        {ago(time.Minute), ago(0), 60},
		"not opened in this cycle":              {nil, ago(0), 0},
		"had its own values back a pass before": {ago(time.Minute), ago(time.Second), 0},
		"is open yet":                           {ago(time.Minute), nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before := windowSum(g)
			p := &pass{now: now, begun: now.Add(-10 * time.Minute), decisions: map[string]decided{
				"hook": {decision: decide.Decision{Record: &v1alpha1.HookRecord{Opened: test.opened, Returned: test.returned}}},
				"none": {},
			}}
			p.measureWindows()
			g.Expect(windowSum(g) - before).To(Equal(test.want))
		})
	}
}

func TestWhatIsShownStandsWhileNothingBetterIsKnown(t *testing.T) {
	g := NewWithT(t)
	key := types.NamespacedName{Namespace: "shoot--a--measured", Name: "guard"}
	at := func(p phase.Phase, status string) *pass {
		return &pass{key: key, phase: p, extension: &extensionsv1alpha1.Extension{Status: extensionsv1alpha1.ExtensionStatus{
			DefaultStatus: extensionsv1alpha1.DefaultStatus{ProviderStatus: &runtime.RawExtension{Raw: []byte(status)}},
		}}}
	}
	exists := Outcome{Exists: true}
	at(phase.Awake, `{"open":2,"gate":{"state":"Closed"}}`).measure(exists, nil)
	shown := map[string]float64{"hooks_open": 2, "hooks_still_open": 0, "gate_closed": 1}
	g.Expect(shownOf(g, key.Namespace)).To(Equal(shown))
	at(phase.Unreachable, `{"open":0}`).measure(exists, nil)
	at(phase.Awake, `{"open":0}`).measure(exists, errors.New("not told"))
	g.Expect(shownOf(g, key.Namespace)).To(Equal(shown))
	at(phase.Asleep, `{"open":3,"gate":{"state":"Lifted"}}`).measure(exists, nil)
	g.Expect(shownOf(g, key.Namespace)).To(Equal(map[string]float64{"hooks_open": 3, "hooks_still_open": 0, "gate_closed": 0}))
	at(phase.Moving, `{"open":3}`).measure(exists, nil)
	g.Expect(shownOf(g, key.Namespace)).To(BeEmpty())
}

func TestOutcomeOfAPass(t *testing.T) {
	g := NewWithT(t)
	g.Expect(ended(Outcome{}, nil)).To(Equal(metrics.Succeeded))
	g.Expect(ended(Outcome{HoldBack: errors.New("not yet")}, nil)).To(Equal(metrics.HeldBack))
	g.Expect(ended(Outcome{}, fmt.Errorf("failed to read: %w", context.Canceled))).To(Equal(metrics.Interrupted))
	g.Expect(ended(Outcome{HoldBack: errors.New("not yet")}, errors.New("failed"))).To(Equal(metrics.Failed))
}

const metricPrefix = "shoot_hibernation_guard_"

func windowSum(g *WithT) float64 {
	families, err := registry.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		if family.GetName() == metricPrefix+"window_seconds" {
			return family.GetMetric()[0].GetHistogram().GetSampleSum()
		}
	}
	return -1
}

func shownOf(g *WithT, namespace string) map[string]float64 {
	families, err := registry.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	out := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if len(m.GetLabel()) == 1 && m.GetLabel()[0].GetValue() == namespace {
				out[family.GetName()[len(metricPrefix):]] = m.GetGauge().GetValue()
			}
		}
	}
	return out
}
