//go:build e2e

// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

const kyvernoResources = "kyverno-resource-validating-webhook-cfg"

func newKyvernoStage(t *testing.T, o bench.Options) *stage {
	o.Kyverno = true
	s := newStage(t, o, "")
	s.patience = 3 * time.Minute
	s.Expect(s.bench.Kyverno.RequireLabel(s.ctx, "require-team", "team", metav1.NamespaceDefault)).To(Succeed())
	s.Expect(s.bench.Kyverno.RefuseAnnotation(s.ctx, "all-kinds", "forbidden")).To(Succeed())
	return s
}

func TestKyverno(t *testing.T) {
	s := newKyvernoStage(t, bench.Options{})

	s.storyBut(kyvernoOwned, "sleeps and wakes up twice in a row", func() {
		before, err := s.bench.Snapshot(s.ctx)
		s.Expect(err).NotTo(HaveOccurred())
		s.hibernate()
		s.expectOpenAsleep(kyvernoResources)
		s.wakeUp()
		s.expectWhole(before, kyvernoOwned)
		s.expectPoliciesBite()
		s.hibernate()
		s.expectOpenAsleep(kyvernoResources)
		s.wakeUp()
	})
	s.storyBut(kyvernoOwned, "sleeps again before all is given back", func() {
		s.hibernate()
		s.wakeUp()
		s.hibernate()
		s.expectOpenAsleep(kyvernoResources)
		s.wakeUp()
	})
	s.storyBut(kyvernoOwned, "record and annotation are lost, and Kyverno restores its own", func() {
		s.hibernate()
		s.controller.Stop()
		s.forgetRecord()
		s.stopped(bench.StepWaitKubeAPIServer, s.gardenlet.WakeUp)
		resources := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: kyvernoResources}}
		s.Expect(s.bench.Shoot.Client().Patch(s.ctx, resources, client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"`+v1alpha1.OriginalsAnnotation+`":null}}}`)))).To(Succeed())
		s.Expect(s.controller.Start(s.ctx)).To(Succeed())
		s.wakeUp()
	})
	s.expectPoliciesBite()
	s.storyBut(kyvernoOwned, "two replicas put their own values back while they live", func() {
		s.Expect(s.bench.Kyverno.Scale(s.ctx, 2)).To(Succeed())
		s.Expect(s.bench.Kyverno.WaitServing(s.ctx)).To(Succeed())
		begin := time.Now()
		s.hibernate()
		s.expectOpenAsleep(kyvernoResources)
		writes, err := s.bench.Shoot.Audit().Writes(bench.Filter{UserAgent: bench.ControllerAgent, Name: kyvernoResources, Since: begin})
		s.Expect(err).NotTo(HaveOccurred())
		s.t.Logf("%d writes to %s while going down", len(writes), kyvernoResources)
		s.Expect(len(writes)).To(And(BeNumerically(">=", 2), BeNumerically("<=", 8)))
		s.wakeUp()
	})
	s.expectPoliciesBite()
}

func TestKyvernoWithAllItsControllers(t *testing.T) {
	s := newKyvernoStage(t, bench.Options{KyvernoAll: true})
	allRun := func() []string {
		deployments := &appsv1.DeploymentList{}
		s.Expect(s.bench.Shoot.Client().List(s.ctx, deployments, client.InNamespace(bench.KyvernoNamespace))).To(Succeed())
		var missing []string
		for _, d := range deployments.Items {
			if d.Status.ReadyReplicas < ptr.Deref(d.Spec.Replicas, 1) {
				missing = append(missing, d.Name)
			}
		}
		return missing
	}
	s.Eventually(allRun).WithTimeout(s.patience).WithPolling(time.Second).Should(BeEmpty())
	s.storyBut(kyvernoOwned, "sleeps and wakes up", func() {
		s.hibernate()
		s.expectOpenAsleep(kyvernoResources)
		s.wakeUp()
		s.Eventually(allRun).WithTimeout(s.patience).WithPolling(time.Second).Should(BeEmpty())
	})
	s.expectPoliciesBite()
}

// expectPoliciesBite expects that a pod against the policy is refused and a good one is admitted.
func (s *stage) expectPoliciesBite() {
	s.t.Helper()
	pod := func(labels map[string]string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "probe", Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: "probe"}}},
		}
	}
	s.Expect(s.bench.Shoot.Client().Create(s.ctx, pod(nil), client.DryRunAll)).To(MatchError(ContainSubstring("require-team")))
	s.Expect(s.bench.Shoot.Client().Create(s.ctx, pod(map[string]string{"team": "a"}), client.DryRunAll)).To(Succeed())
}
