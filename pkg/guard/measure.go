// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"encoding/json"
	"errors"

	"k8s.io/utils/ptr"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/decide"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/metrics"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
)

// measure counts the pass and shows what it came to.
func (p *pass) measure(out Outcome, err error) {
	for _, w := range p.writes {
		metrics.CountWrite(w.action)
	}
	if err == nil && !out.Exists {
		metrics.Forget(p.key.Namespace)
		return
	}
	metrics.CountPass(p.phase, ended(out, err))
	switch {
	case err != nil, p.phase == phase.Unreachable:
		return // what was shown last is the best that is known
	case p.phase == phase.Moving, p.phase == phase.Deleting:
		metrics.Forget(p.key.Namespace)
		return
	}
	metrics.Show(p.key.Namespace, p.shown())
	p.measureWindows()
}

func ended(out Outcome, err error) metrics.Outcome {
	switch {
	case errors.Is(err, context.Canceled):
		return metrics.Interrupted
	case err != nil:
		return metrics.Failed
	case out.HoldBack != nil:
		return metrics.HeldBack
	default:
		return metrics.Succeeded
	}
}

// shown is what was told of the Shoot, as numbers.
func (p *pass) shown() metrics.Shoot {
	var s metrics.Shoot
	status := &v1alpha1.GuardStatus{}
	if told := p.extension.Status.ProviderStatus; told != nil && json.Unmarshal(told.Raw, status) == nil {
		s.Open = int(status.Open)
		if status.Gate != nil {
			s.GateClosed = ptr.To(status.Gate.State == v1alpha1.GateClosed)
		}
	}
	for _, d := range p.decisions {
		switch d.decision.State {
		case decide.StillOpen, decide.OriginalUnknown:
			s.StillOpen++
		case decide.RestoreFailed:
			if standsOpen(d) {
				s.StillOpen++
			}
		}
	}
	return s
}

// measureWindows notes how long the hooks were open that had their own policy back in this pass.
func (p *pass) measureWindows() {
	for _, d := range p.decisions {
		rec := d.decision.Record
		if rec == nil || rec.Opened == nil || rec.Returned == nil || !rec.Returned.Time.Equal(p.now) {
			continue
		}
		since := rec.Opened.Time
		if p.begun.After(since) {
			since = p.begun
		}
		metrics.ObserveWindow(p.now.Sub(since))
	}
}
