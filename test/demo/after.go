// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

// account takes down what the guard did and left, once it is done or should have been.
func (s *stage) account(ctx context.Context, with *WithGuard) error {
	s.timeline.line(markPhase, "RESTORE  each hook gets its own policy back when its backend answers for 20 s")
	_ = until(ctx, settledWithin, func() bool { return s.settled(ctx) })
	if ctx.Err() != nil {
		return ctx.Err()
	}
	settled := time.Now()
	after, err := s.bench.Snapshot(ctx)
	if err != nil {
		return err
	}
	events, err := s.bench.Shoot.Audit().Writes(bench.Filter{Group: "admissionregistration.k8s.io"})
	if err != nil {
		return err
	}
	all, err := changes(events)
	if err != nil {
		return err
	}
	foreign, err := foreignWrites(events)
	if err != nil {
		return err
	}
	record, err := s.record(ctx)
	if err != nil {
		return err
	}
	findings := assess(s.before.Diff(after), after.Leftovers(), foreign, record)
	with.OriginalsLost, with.OtherFieldsChanged, with.Leftovers, with.Differences = findings.lost, findings.changed, findings.left, findings.lines
	if err := s.witness.Err(); err != nil {
		return fmt.Errorf("failed to see everything: %w", err)
	}
	with.LastProcessToLastIgnore = s.openLag
	var restored time.Time
	for _, c := range restorers(all, s.expected, s.originals, s.wakeBegun) {
		if c.by == byGuard {
			with.Restored.ByGuard++
		} else {
			with.Restored.ByOwner++
		}
		if c.at.After(restored) {
			restored = c.at
		}
	}
	with.Seconds.APIServerToRestored = seconds(s.apiStarted, restored)
	with.Seconds.APIServerToSettled = seconds(s.apiStarted, settled)
	with.WritesPerConfiguration = writesOf(events, s.sleepBegun)
	s.timeline.line(markPhase, "RESTORED  %.1f s after the API server's start, and nothing left to do after %.1f s:", with.Seconds.APIServerToRestored, with.Seconds.APIServerToSettled)
	s.showHooks(settled)
	if with.Access, err = s.accessOf(); err != nil {
		return err
	}
	s.endWatch() // what is refused from now on is meant to be
	return s.tryPolicies(ctx, &with.Policies)
}

// settled says whether all hooks have their originals back and the guard has nothing left to do.
func (s *stage) settled(ctx context.Context) bool {
	now := s.hooksAt(time.Now())
	for h, original := range s.originals {
		if now[h] != original {
			return false
		}
	}
	after, err := s.bench.Snapshot(ctx)
	if err != nil || len(after.Leftovers()) > 0 {
		return false
	}
	record, err := s.record(ctx)
	return err == nil && len(record) == 0
}

// record are the hooks on the extension's record, and its cycle.
func (s *stage) record(ctx context.Context) ([]string, error) {
	extension := &extensionsv1alpha1.Extension{}
	key := client.ObjectKey{Namespace: s.bench.Namespace, Name: bench.ExtensionType}
	if err := s.bench.Seed.Client().Get(ctx, key, extension); err != nil {
		return nil, fmt.Errorf("failed to get extension: %w", err)
	}
	if extension.Status.State == nil {
		return nil, nil
	}
	state := &v1alpha1.GuardState{}
	if err := json.Unmarshal(extension.Status.State.Raw, state); err != nil {
		return nil, fmt.Errorf("failed to decode state: %w", err)
	}
	var left []string
	for _, h := range state.Hooks {
		left = append(left, "on record: "+Hook{h.Kind, h.Configuration, h.Hook}.String())
	}
	if state.Cycle != nil {
		left = append(left, "on record: a cycle")
	}
	return left, nil
}

// nodesReady says whether there is a node and all of them are Ready.
func (s *stage) nodesReady(ctx context.Context) (bool, error) {
	nodes := &corev1.NodeList{}
	if err := s.bench.Shoot.Client().List(ctx, nodes); err != nil {
		return false, fmt.Errorf("failed to list nodes: %w", err)
	}
	for i := range nodes.Items {
		if !nodeIsReady(&nodes.Items[i]) {
			return false, nil
		}
	}
	return len(nodes.Items) > 0, nil
}

// tryPolicies creates a pod that the policy on pods refuses, and one that it admits.
func (s *stage) tryPolicies(ctx context.Context, found *Policies) error {
	pod := func(labels map[string]string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "demo-", Namespace: policyPlace, Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "demo", Image: "demo"}}},
		}
	}
	violating, good := pod(nil), pod(map[string]string{policyLabel: "demo"})
	err := s.bench.Shoot.Client().Create(ctx, violating)
	switch {
	case err == nil:
		s.timeline.line(markBroken, "the pod without label %s was admitted", policyLabel)
	case denied(err):
		found.ViolatingPodDenied = true
		s.timeline.line(markGood, "a pod without label %s is denied: %s", policyLabel, err)
	default:
		s.timeline.line(markBroken, "the pod without label %s was refused otherwise: %s", policyLabel, err)
	}
	if err != nil {
		found.Text = err.Error()
	}
	if err := s.bench.Shoot.Client().Create(ctx, good); err != nil {
		s.timeline.line(markBroken, "the pod with label %s was refused: %s", policyLabel, err)
		return nil
	}
	found.GoodPodAdmitted = true
	s.timeline.line(markGood, "a pod with label %s is admitted", policyLabel)
	if err := s.bench.Shoot.Client().Delete(ctx, good, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("failed to delete the pod: %w", err)
	}
	return nil
}

// denied says whether a webhook was asked and said no. A webhook that could not be called is another error.
func denied(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "denied the request") ||
		apierrors.IsForbidden(err) && strings.Contains(err.Error(), "denied the request")
}
