// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

const (
	// sleepWithin is when a sleep counts as hanging: without webhooks in the way it takes seconds.
	sleepWithin = time.Minute
	// forceWithin bounds what an operator's hands need.
	forceWithin = 2 * time.Minute
	// flowWithin bounds the rest of a wake-up after the first Ready node, settledWithin the guard's work after that: it
	// waits for backends, and twice for 20 s.
	flowWithin    = time.Minute
	settledWithin = 2 * time.Minute
	asleepFor     = 3 * time.Second
)

// play plays one run from an awake Shoot to its end.
func (s *stage) play(ctx context.Context) (Run, error) {
	run := Run{}
	run.Seconds.Prepare = seconds(s.begun, time.Now())
	if err := s.sleep(ctx, &run); err != nil {
		return run, err
	}
	select {
	case <-ctx.Done():
		return run, ctx.Err()
	case <-time.After(asleepFor):
	}
	return run, s.wake(ctx, &run)
}

// sleep sends the Shoot to sleep, by force if it hangs.
func (s *stage) sleep(ctx context.Context, run *Run) error {
	s.bench.Machines.ResetBlocked()
	s.observer.forget()
	s.sleepBegun = time.Now()
	s.timeline.line(markPhase, "SLEEP  spec.hibernation.enabled: true")
	stopped := s.awaitStop(ctx)
	err := within(ctx, sleepWithin, s.gardenlet.Hibernate)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		run.Sleep.Forced = true
		forced := time.Now()
		s.timeline.line(markBroken, "THE SLEEP HANGS  %s; an operator forces it", s.observer.state())
		if err := within(ctx, forceWithin, s.gardenlet.ForceSleep); err != nil {
			return fmt.Errorf("failed to force the sleep: %w", err)
		}
		run.Seconds.SleepForced = seconds(forced, time.Now())
	}
	select {
	case s.apiStopped = <-stopped:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.observer.look(s.sleepBegun)
	run.Seconds.Sleep = seconds(s.sleepBegun, s.apiStopped)
	run.OpenWhenAPIStopped = openIn(s.hooksAt(s.apiStopped), s.originals)
	s.openLag = s.lag(run.OpenWhenAPIStopped)
	s.timeline.line(markPhase, "ASLEEP  the API server ended %.1f s after the order; its hooks in etcd:", run.Seconds.Sleep)
	s.showHooks(s.apiStopped)
	run.Sleep.Blocked, err = s.blocked(s.sleepBegun, s.apiStopped)
	return err
}

// lag is the time from the end of Kyverno's last process to the commit of the last of its hooks as open.
func (s *stage) lag(open []Hook) float64 {
	var last time.Time
	for _, h := range open {
		if seen := s.witness.At(bench.HookID(h), s.apiStopped); h.Configuration != inHouseWebhook && seen.At.After(last) {
			last = seen.At
		}
	}
	return max(0, seconds(s.bench.Kyverno.Ended(), last))
}

// awaitStop tells when the API server's process has ended.
func (s *stage) awaitStop(ctx context.Context) <-chan time.Time {
	stopped := make(chan time.Time, 1)
	go func() {
		for s.bench.Shoot.Running() {
			select {
			case <-ctx.Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
		stopped <- time.Now()
	}()
	return stopped
}

// wake wakes the Shoot up, and gives up if no node is Ready in time.
func (s *stage) wake(ctx context.Context, run *Run) error {
	s.bench.Machines.ResetBlocked()
	s.observer.forget()
	s.wakeBegun = time.Now()
	run.Seconds.Asleep = seconds(s.apiStopped, s.wakeBegun)
	if err := s.outliveTokens(ctx); err != nil {
		return err
	}
	s.timeline.line(markPhase, "WAKE-UP  spec.hibernation.enabled: false")
	flowCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	flow := make(chan error, 1)
	go func() {
		defer close(flow)
		flow <- s.gardenlet.WakeUp(flowCtx)
	}()

	apiServer := func() bool {
		s.apiStarted = s.observer.done(bench.StepWaitKubeAPIServer)
		return !s.apiStarted.IsZero()
	}
	err := until(ctx, flowWithin, apiServer)
	if err == nil {
		s.timeline.at(s.apiStarted, markPhase, "API SERVER READY  from now on a node has %.0f s to become Ready", deadlockAfter.Seconds())
		run.Seconds.WakeToAPIServer = seconds(s.wakeBegun, s.apiStarted)
		err = s.awaitNodes(ctx, run, flow)
	}
	cancel()
	for range flow { // what ended it is told, or was the demo
	}
	return errors.Join(err, ctx.Err())
}

// awaitNodes waits for the first Ready node and then for the end of the flow.
func (s *stage) awaitNodes(ctx context.Context, run *Run, flow <-chan error) error {
	node := func() bool { return !s.observer.nodeReady().IsZero() }
	_ = until(ctx, time.Until(s.apiStarted.Add(deadlockAfter)), node)
	run.Wake.NodeReady = node()
	run.Seconds.APIServerToNodeReady = seconds(s.apiStarted, s.observer.nodeReady())
	if run.Wake.NodeReady {
		s.timeline.at(s.observer.nodeReady(), markGood, "a node is Ready, %.1f s after the API server's start", run.Seconds.APIServerToNodeReady)
		select {
		case err := <-flow:
			run.Wake.Finished = err == nil
			if err != nil {
				s.timeline.line(markBroken, "the wake-up failed: %s", shorten(err.Error()))
			}
			run.Seconds.APIServerToFlowDone = seconds(s.apiStarted, time.Now())
		case <-time.After(flowWithin):
			s.timeline.line(markBroken, "the wake-up does not end: %s", s.observer.state())
		case <-ctx.Done():
			return ctx.Err()
		}
	} else {
		s.timeline.line(markBroken, "DEADLOCK  no node is Ready after %.0f s; %s", deadlockAfter.Seconds(), s.observer.state())
	}
	ready, err := s.nodesReady(ctx)
	if err != nil {
		return err
	}
	run.NodesReady = ready
	s.observer.look(s.sleepBegun)
	run.Wake.Blocked, err = s.blocked(s.wakeBegun, time.Now())
	return err
}

// blocked are the refusals between two moments.
func (s *stage) blocked(from, to time.Time) ([]Blocked, error) {
	events, err := s.bench.Shoot.Audit().Events(bench.Filter{Failed: true, Since: from, Until: to})
	if err != nil {
		return nil, err
	}
	return refusals(events, s.bench.Machines.Blocked()), nil
}

// within calls do with a context that ends after limit.
func within(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return do(ctx)
}

// until waits until done is true.
func until(ctx context.Context, limit time.Duration, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}
