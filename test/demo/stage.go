// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

// The Shoot's policies and webhook.
const (
	policyPods     = "require-team"
	policyAll      = "refuse-forbidden"
	policyLabel    = "team"
	policyForbids  = "forbidden"
	policyPlace    = "default"
	inHouseWebhook = "in-house"
)

// stage is one run: a Shoot on a bench, with or without the extension.
type stage struct {
	guarded   bool
	expected  []Hook // the hooks in scope
	timeline  *timeline
	observer  *observer
	bench     *bench.Bench
	gardenlet *bench.Gardenlet
	witness   *bench.Witness

	stopLive, stopWatch context.CancelFunc
	living, watching    sync.WaitGroup

	before    bench.Snapshot
	originals map[Hook]hook.Values
	// Moments of the run.
	begun, sleepBegun, apiStopped, wakeBegun, apiStarted time.Time
	openLag                                              float64 // see WithGuard.LastProcessToLastIgnore
	tokensExpired                                        bool    // see Access.TokensExpired
}

// newStage starts a bench with everything on it. What it started is ended by close, also after an error.
func newStage(ctx context.Context, t *timeline, guarded bool, expected []Hook, dir string) (*stage, error) {
	s := &stage{guarded: guarded, expected: expected, timeline: t, observer: newObserver(t), begun: time.Now()}
	live, stop := context.WithCancel(ctx)
	s.stopLive = stop
	s.living.Go(func() { s.observer.live(live) })
	t.line(markPhase, "PREPARE  a seed and a Shoot of real control planes, and Kyverno")
	starting := s.observer.during("starting control planes, a machine and Kyverno")
	var err error
	s.bench, err = bench.New(ctx, bench.Options{Kyverno: true, Dir: dir, Log: newLogger(t)})
	starting()
	if err != nil {
		return s, err
	}
	s.observer.bench = s.bench
	return s, s.furnish(ctx)
}

// furnish makes the Shoot what it is in the story.
func (s *stage) furnish(ctx context.Context) error {
	s.gardenlet = bench.NewGardenlet(s.bench, bench.GardenletOptions{Extension: s.guarded, OnStep: s.observer.step})
	if s.guarded {
		starting := s.observer.during("building and starting the extension's controller")
		_, err := s.bench.StartController(ctx, bench.ControllerOptions{})
		starting()
		if err != nil {
			return err
		}
		s.timeline.line(markStep, "the extension's controller runs")
	}
	if err := s.gardenlet.Reconcile(ctx); err != nil {
		return fmt.Errorf("failed to reconcile the Shoot: %w", err)
	}
	if err := s.bench.Kyverno.RequireLabel(ctx, policyPods, policyLabel, policyPlace); err != nil {
		return err
	}
	if err := s.bench.Kyverno.RefuseAnnotation(ctx, policyAll, policyForbids); err != nil {
		return err
	}
	s.timeline.line(markStep, "Kyverno enforces %s (pods in %s) and %s (kinds *)", policyPods, policyPlace, policyAll)
	if _, err := s.bench.InstallWebhook(ctx, bench.WebhookOptions{
		Name: inHouseWebhook,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
		}},
		FailurePolicy: ptr.To(admissionregistrationv1.Fail),
	}); err != nil {
		return err
	}
	s.timeline.line(markStep, "in-house webhook serves: all operations on pods, fail-closed")
	return s.remember(ctx)
}

// remember takes down how all hooks are before anything happens.
func (s *stage) remember(ctx context.Context) error {
	var err error
	if s.witness, err = s.bench.Witness(ctx); err != nil {
		return err
	}
	if s.before, err = s.bench.Snapshot(ctx); err != nil {
		return err
	}
	s.originals = s.hooksAt(time.Now())
	s.timeline.line(markPhase, "AWAKE  its hooks:")
	s.showHooks(time.Now())
	watch, stop := context.WithCancel(ctx)
	s.stopWatch = stop
	since := time.Now()
	s.watching.Go(func() { s.observer.watch(watch, since) })
	return nil
}

// showHooks tells the state of each hook at a time; of those out of scope only how many there are.
func (s *stage) showHooks(at time.Time) {
	now := s.hooksAt(at)
	for _, h := range s.expected {
		m, values := markHook, (*hook.Values)(nil)
		if v, ok := now[h]; ok {
			values = &v
		}
		if isOpen(h, values) {
			m = markOpen
		}
		s.timeline.line(m, "%s  %s", columned(values), h)
		delete(now, h)
	}
	s.timeline.line(markHook, "and %d that are called for Kyverno's own kinds only", len(now))
}

// hooksAt are the hooks in etcd at a time.
func (s *stage) hooksAt(at time.Time) map[Hook]hook.Values {
	all := map[Hook]hook.Values{}
	for _, id := range s.witness.Hooks() {
		if seen := s.witness.At(id, at); seen.Exists {
			all[Hook(id)] = hook.Values{Policy: admissionregistrationv1.FailurePolicyType(seen.FailurePolicy), Timeout: seen.TimeoutSeconds}
		}
	}
	return all
}

// endWatch has the observer look no longer.
func (s *stage) endWatch() {
	if s.stopWatch != nil {
		s.stopWatch()
		s.watching.Wait()
	}
}

// close ends all that was started.
func (s *stage) close() error {
	s.endWatch()
	if s.witness != nil {
		s.witness.Close()
	}
	if s.gardenlet != nil {
		s.gardenlet.Close()
	}
	err := s.bench.Close()
	s.stopLive()
	s.living.Wait()
	if err != nil {
		return errors.Join(errors.New("failed to clean up"), err)
	}
	return nil
}
