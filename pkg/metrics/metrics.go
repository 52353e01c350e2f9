// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics counts what the guard does and shows where each Shoot stands, in the registry that controller-runtime serves.
// docs/operations/metrics.md says what to do about each metric.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/decide"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
)

const (
	prefix = "shoot_hibernation_guard_"
	// shootNamespace is the Shoot's namespace on the seed. It is not called namespace: the seed's Prometheus gives that label to
	// the namespace of the pod that it scrapes.
	shootNamespace = "shoot_namespace"
)

// Outcome of a pass.
type Outcome string

// Outcomes of a pass.
const (
	// Succeeded: what could be done was done, and told.
	Succeeded Outcome = "Succeeded"
	// HeldBack: hibernation is not to go on yet.
	HeldBack Outcome = "HeldBack"
	// Interrupted: the pass made way for a lifecycle call, or the process ends.
	Interrupted Outcome = "Interrupted"
	// Failed: the pass ended with an error.
	Failed Outcome = "Failed"
)

var (
	hooksOpen = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: prefix + "hooks_open", Help: "Webhooks of a Shoot that are fail-open because of the guard.",
	}, []string{shootNamespace})
	hooksStillOpen = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: prefix + "hooks_still_open", Help: "Webhooks of a Shoot that are fail-open and wait for a person: past the deadline, given back in vain, or of unknown original.",
	}, []string{shootNamespace})
	gateClosed = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: prefix + "gate_closed", Help: "1 while webhooks keep Gardener from hibernating a Shoot, 0 while they do not.",
	}, []string{shootNamespace})
	passes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: prefix + "passes_total", Help: "Passes over Shoots, by the Shoot's phase and how the pass ended.",
	}, []string{"phase", "outcome"})
	writes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: prefix + "writes_total", Help: "Changes to webhook configurations that a Shoot's API server accepted.",
	}, []string{"action"})
	window = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    prefix + "window_seconds",
		Help:    "Time a webhook was fail-open while the Shoot's API server ran: since the begin of the wake-up, or since it was opened if that was later.",
		Buckets: []float64{15, 30, 60, 120, 300, 600, 1200, 1800, 3600},
	})
)

func init() {
	metrics.Registry.MustRegister(hooksOpen, hooksStillOpen, gateClosed, passes, writes, window)
}

// Shoot is what is shown of one Shoot.
type Shoot struct {
	// Open counts the hooks that are open because of the guard.
	Open int
	// StillOpen counts those of them that wait for a person.
	StillOpen int
	// GateClosed says whether webhooks keep Gardener from hibernating the Shoot; nil when that was not judged.
	GateClosed *bool
}

// Show shows where the Shoot with this namespace on the seed stands, until it is shown anew or forgotten.
func Show(namespace string, s Shoot) {
	hooksOpen.WithLabelValues(namespace).Set(float64(s.Open))
	hooksStillOpen.WithLabelValues(namespace).Set(float64(s.StillOpen))
	switch {
	case s.GateClosed == nil:
		gateClosed.DeleteLabelValues(namespace)
	case *s.GateClosed:
		gateClosed.WithLabelValues(namespace).Set(1)
	default:
		gateClosed.WithLabelValues(namespace).Set(0)
	}
}

// Forget removes all that is shown of a Shoot.
func Forget(namespace string) {
	hooksOpen.DeleteLabelValues(namespace)
	hooksStillOpen.DeleteLabelValues(namespace)
	gateClosed.DeleteLabelValues(namespace)
}

// CountPass counts a pass over a Shoot in a phase; the phase is empty when the pass did not come to know it.
func CountPass(p phase.Phase, o Outcome) {
	if p == "" {
		p = "Unknown"
	}
	passes.WithLabelValues(string(p), string(o)).Inc()
}

// CountWrite counts a change of a webhook configuration.
func CountWrite(a decide.Action) { writes.WithLabelValues(string(a)).Inc() }

// ObserveWindow notes how long a hook was open until it had its own policy back, the sleep itself not counted.
func ObserveWindow(d time.Duration) { window.Observe(d.Seconds()) }
