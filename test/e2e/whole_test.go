//go:build e2e

// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

// mayDiffer says of what may change in a story that it does so.
type mayDiffer func(bench.Difference) bool

func nothing(bench.Difference) bool { return false }

// owners: the configuration has a living owner, or a person, who takes fields.
func owners(d bench.Difference) bool { return strings.HasPrefix(d.Field, bench.FieldManaged) }

// kyvernoOwned: Kyverno renews its certificates, too.
func kyvernoOwned(d bench.Difference) bool { return owners(d) || d.Field == bench.FieldCABundle }

// policy returns the failure policy of an in-house webhook as it is in etcd.
func (s *stage) policy(w *bench.Webhook) string {
	for _, id := range s.witness.Hooks() {
		if id.Hook == w.HookName {
			return s.witness.Now(id).FailurePolicy
		}
	}
	return "missing"
}

// expectOpenAsleep expects the hooks of these configurations to be fail-open in etcd while the API server is down.
func (s *stage) expectOpenAsleep(configurations ...string) {
	s.t.Helper()
	s.Expect(s.bench.Shoot.Running()).To(BeFalse())
	s.Expect(s.witness.Err()).NotTo(HaveOccurred())
	seen := 0
	for _, id := range s.witness.Hooks() {
		if now := s.witness.Now(id); now.Exists && slices.Contains(configurations, id.Configuration) {
			seen++
			s.Expect(now.FailurePolicy).To(Equal("Ignore"), id.String())
		}
	}
	s.Expect(seen).To(BeNumerically(">=", len(configurations)))
}

// state is the record.
func (s *stage) state() *v1alpha1.GuardState {
	state := &v1alpha1.GuardState{}
	if extension := s.extension(); extension != nil && extension.Status.State != nil {
		s.Expect(json.Unmarshal(extension.Status.State.Raw, state)).To(Succeed())
	}
	return state
}

// report is the extension's providerStatus.
func (s *stage) report() *v1alpha1.GuardStatus {
	status := &v1alpha1.GuardStatus{}
	if extension := s.extension(); extension != nil && extension.Status.ProviderStatus != nil {
		s.Expect(json.Unmarshal(extension.Status.ProviderStatus.Raw, status)).To(Succeed())
	}
	return status
}

// reasons are the reasons the report gives for the hooks of a configuration.
func (s *stage) reasons(configuration string) []string {
	var out []string
	for _, h := range s.report().Hooks {
		if h.Configuration == configuration {
			out = append(out, h.Reason)
		}
	}
	return out
}

// condition is the extension's condition as `status reason`.
func (s *stage) condition() string {
	extension := s.extension()
	if extension == nil {
		return "no extension"
	}
	for _, c := range extension.Status.Conditions {
		if c.Type == gardencorev1beta1.ShootSystemComponentsHealthy {
			return string(c.Status) + " " + c.Reason
		}
	}
	return "no condition"
}

// expectWhole expects nodes to be Ready and everything to be as it was before, with nothing of ours left.
func (s *stage) expectWhole(before bench.Snapshot, allowed mayDiffer) {
	s.t.Helper()
	s.Eventually(s.readyNodes).WithTimeout(30 * time.Second).Should(BeNumerically(">", 0))
	s.Eventually(s.notWhole).WithArguments(before, allowed).WithTimeout(s.patience).WithPolling(500 * time.Millisecond).Should(BeEmpty())
}

func (s *stage) readyNodes() int {
	nodes := &corev1.NodeList{}
	s.Expect(s.bench.Shoot.Client().List(s.ctx, nodes)).To(Succeed())
	ready := 0
	for _, n := range nodes.Items {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	return ready
}

// notWhole lists what is not as it was before.
func (s *stage) notWhole(before bench.Snapshot, allowed mayDiffer) []string {
	now, err := s.bench.Snapshot(s.ctx)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, d := range now.Leftovers() {
		out = append(out, "left: "+d.String())
	}
	for _, d := range before.Diff(now) {
		if !allowed(d) {
			out = append(out, "changed: "+d.String())
		}
	}
	if s.extension() == nil {
		return out
	}
	if state := s.state(); len(state.Hooks) > 0 || state.Cycle != nil {
		out = append(out, fmt.Sprintf("%d hooks on record, cycle %v", len(state.Hooks), state.Cycle))
	}
	if condition := s.condition(); condition != "True "+v1alpha1.ReasonEnforced {
		out = append(out, "condition "+condition)
	}
	return out
}
