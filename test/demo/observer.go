// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

const (
	lookEvery  = 250 * time.Millisecond
	countEvery = time.Second
	// silence is how long nothing may happen on the timeline before it says that it lives.
	silence = 5 * time.Second
)

// observer tells the timeline what the API server's log and the flow say, and that it lives.
type observer struct {
	timeline *timeline
	bench    *bench.Bench

	mu      sync.Mutex
	doing   map[string]time.Time // steps of the flow and when they began
	told    map[string]bool      // what is on the timeline already
	answers map[string]string    // the API server's texts that are, and the request each was for
	refused int                  // requests
	cluster string               // nodes and pods as last seen
	ready   time.Time            // when a node was first seen Ready since the last forget
	steps   map[string]time.Time // when steps first succeeded since the last forget
}

func newObserver(t *timeline) *observer {
	return &observer{timeline: t, doing: map[string]time.Time{}, told: map[string]bool{}, answers: map[string]string{}, steps: map[string]time.Time{}}
}

// during makes what goes on part of state until the returned function is called.
func (o *observer) during(what string) (end func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.doing[what] = time.Now()
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.doing, what)
	}
}

// forget begins a new phase.
func (o *observer) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refused, o.ready, o.cluster = 0, time.Time{}, ""
	clear(o.steps)
}

// nodeReady is when a node was first seen Ready in this phase; zero if none was.
func (o *observer) nodeReady() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ready
}

// done is when a step of the flow first succeeded in this phase; zero if it did not.
func (o *observer) done(step string) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.steps[step]
}

// live says that the demo lives whenever nothing else was said for a while, until ctx ends.
func (o *observer) live(ctx context.Context) {
	for ticker := time.NewTicker(lookEvery); ; {
		select {
		case <-ctx.Done():
			ticker.Stop()
			return
		case <-ticker.C:
		}
		if o.timeline.quiet() >= silence {
			o.timeline.line(markAlive, "%s", o.state())
		}
	}
}

// watch looks at the API server's log and at the cluster until ctx ends.
func (o *observer) watch(ctx context.Context, since time.Time) {
	var counted time.Time
	for {
		if time.Since(counted) >= countEvery && o.bench.Shoot.Running() {
			o.count(ctx)
			counted = time.Now()
		}
		o.look(since)
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
		}
	}
}

// look tells what is new in the API server's log.
func (o *observer) look(since time.Time) {
	writes, err := o.bench.Shoot.Audit().Writes(bench.Filter{Group: "admissionregistration.k8s.io"})
	if err != nil {
		o.timeline.line(markBroken, "%v", err)
		return
	}
	all, err := changes(writes)
	if err != nil {
		o.timeline.line(markBroken, "%v", err)
		return
	}
	for _, c := range all {
		if c.at.After(since) && o.isNew(fmt.Sprint(c.at.UnixNano(), c.hook)) {
			m := markHook
			if isOpen(c.hook, c.to) {
				m = markOpen
			}
			o.timeline.at(c.at, m, "%s  %s, by %s", transition(c.from, c.to), c.hook, c.by)
		}
	}
	refused, err := o.bench.Shoot.Audit().Events(bench.Filter{Failed: true, Since: since})
	if err != nil {
		o.timeline.line(markBroken, "%v", err)
		return
	}
	for i := range refused {
		o.refusal(&refused[i])
	}
}

// refusal tells each kind of refusal once and counts the rest.
func (o *observer) refusal(e *auditv1.Event) {
	if !namesWebhook(e) || !o.isNew(string(e.AuditID)) {
		return
	}
	o.mu.Lock()
	o.refused++
	o.mu.Unlock()
	text, request := e.ResponseStatus.Message, e.Verb+" "+resource(e.ObjectRef)
	if !o.isNew(request + text) {
		return
	}
	o.mu.Lock()
	first := o.answers[text]
	if first == "" {
		o.answers[text] = request
	}
	o.mu.Unlock()
	if first != "" {
		text = "the same answer as to " + first
	}
	o.timeline.at(e.StageTimestamp.Time, markRefused, "%s: %s", request, text)
}

func (o *observer) isNew(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.told[key]
	o.told[key] = true
	return !known
}

// transition says how a hook was and is, in columns.
func transition(from, to *hook.Values) string { return columned(from) + " → " + columned(to) }

func columned(v *hook.Values) string {
	if v == nil {
		return "none       "
	}
	return fmt.Sprintf("%-6s %2d s", v.Policy, v.Timeout)
}

// count looks at nodes and pods.
func (o *observer) count(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	nodes, pods := &corev1.NodeList{}, &corev1.PodList{}
	if o.bench.Shoot.Client().List(ctx, nodes) != nil || o.bench.Shoot.Client().List(ctx, pods) != nil {
		return // it starts or stops
	}
	readyNodes, readyPods := 0, 0
	for i := range nodes.Items {
		if nodeIsReady(&nodes.Items[i]) {
			readyNodes++
		}
	}
	for i := range pods.Items {
		if podIsReady(&pods.Items[i]) {
			readyPods++
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cluster = fmt.Sprintf("nodes %d/%d, pods %d/%d Ready", readyNodes, len(nodes.Items), readyPods, len(pods.Items))
	if readyNodes > 0 && o.ready.IsZero() {
		o.ready = time.Now()
	}
}

func nodeIsReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func podIsReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// state is one line on how things stand.
func (o *observer) state() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var parts []string
	if o.cluster != "" {
		parts = append(parts, o.cluster)
	}
	if o.refused > 0 {
		parts = append(parts, fmt.Sprintf("%d refused", o.refused))
	}
	steps := slices.SortedFunc(maps.Keys(o.doing), func(a, b string) int { return o.doing[a].Compare(o.doing[b]) })
	if len(steps) > 0 {
		step := steps[len(steps)-1]
		parts = append(parts, fmt.Sprintf("%s %d s", step, int(time.Since(o.doing[step]).Seconds())))
	}
	if len(parts) == 0 {
		return "still at it"
	}
	return strings.Join(parts, "; ")
}

// step takes over what Gardenlet tells. On the timeline are the steps that take long or fail.
func (o *observer) step(s bench.Step) {
	o.mu.Lock()
	if s.Ended.IsZero() {
		o.doing[s.Name] = s.Begun
	} else {
		delete(o.doing, s.Name)
		if _, known := o.steps[s.Name]; !known && s.Err == nil {
			o.steps[s.Name] = s.Ended
		}
	}
	o.mu.Unlock()
	took := s.Ended.Sub(s.Begun)
	switch {
	case s.Ended.IsZero():
	case errors.Is(s.Err, context.Canceled): // by the demo
	case s.Err != nil:
		o.timeline.line(markFailed, "%s failed after %.1f s: %s", s.Name, took.Seconds(), shorten(s.Err.Error()))
	case took >= 500*time.Millisecond:
		o.timeline.line(markStep, "%s (%.1f s)", s.Name, took.Seconds())
	}
}

// shorten leaves the begin of a long text: gardenlet's errors repeat themselves.
func shorten(text string) string {
	const limit = 400
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit]) + " …"
	}
	return text
}
