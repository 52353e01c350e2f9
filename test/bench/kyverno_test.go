// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/go-logr/logr/testr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	. "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

// TestKyverno: the real admission controller enforces policies, and a cluster that loses it with its machines is in
// the deadlock.
func TestKyverno(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	begin := time.Now()
	b, err := New(ctx, Options{Log: testr.New(t), Dir: t.TempDir(), Kyverno: true, KeepProbeDelays: true, VMDeletion: 2 * time.Second})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = b.Close() })
	t.Logf("started in %s", time.Since(begin).Round(time.Millisecond))

	pods := kyvernoPods(g, ctx, b, "admission-controller")
	g.Expect(pods).To(HaveLen(1))
	g.Expect(readySince(pods[0]).Sub(pods[0].Status.StartTime.Time)).To(BeNumerically(">=", 4*time.Second), "initialDelaySeconds is 5, times are whole seconds")
	for _, other := range []string{"background-controller", "cleanup-controller", "reports-controller"} {
		for _, pod := range kyvernoPods(g, ctx, b, other) {
			g.Expect(pod.Status.Phase).To(Equal(corev1.PodPending), other)
		}
	}
	testPolicies(g, ctx, b)
	g.Expect(b.Shoot.Audit().Writes(Filter{
		User: "system:serviceaccount:kyverno:kyverno-admission-controller", Group: "admissionregistration.k8s.io", Name: "kyverno-resource-validating-webhook-cfg",
	})).NotTo(BeEmpty(), "Kyverno writes under its own account")

	g.Expect(b.Kyverno.Scale(ctx, 2)).To(Succeed())
	g.Expect(b.Kyverno.WaitServing(ctx)).To(Succeed())
	g.Expect(kyvernoPods(g, ctx, b, "admission-controller")).To(HaveLen(2))

	testDeadlock(g, ctx, b)
	begin = time.Now()
	g.Expect(b.Close()).To(Succeed())
	t.Logf("closed in %s", time.Since(begin).Round(time.Millisecond))
}

func testPolicies(g *WithT, ctx context.Context, b *Bench) {
	g.Expect(b.Kyverno.RequireLabel(ctx, "require-team", "team")).To(Succeed())
	g.Expect(b.Kyverno.RefuseAnnotation(ctx, "refuse-forbidden", "forbidden")).To(Succeed())
	pod := probedPod("labelled")
	pod.Namespace = "default"
	refused := MatchError(And(ContainSubstring(`admission webhook "validate.kyverno.svc-fail" denied the request`), ContainSubstring("refused by policy require-team")))
	g.Eventually(func() error { return b.Shoot.Client().Create(ctx, pod.DeepCopy(), client.DryRunAll) }, "5s").Should(refused)
	pod.Labels = map[string]string{"team": "a"}
	g.Expect(b.Shoot.Client().Create(ctx, pod, client.DryRunAll)).To(Succeed())

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{"forbidden": "x"}}}
	g.Expect(b.Shoot.Client().Create(ctx, namespace.DeepCopy(), client.DryRunAll)).To(MatchError(ContainSubstring("refused by policy refuse-forbidden")))
	namespace.Annotations = nil
	g.Expect(b.Shoot.Client().Create(ctx, namespace, client.DryRunAll)).To(Succeed())
}

func testDeadlock(g *WithT, ctx context.Context, b *Bench) {
	begin := time.Now()
	// Deleting the node is refused, too, once Kyverno is gone: machine-controller-manager insists in vain.
	hanging, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	go func() { _ = b.Machines.Scale(hanging, 0) }()
	g.Eventually(b.Kyverno.Ended, "60s").Should(BeTemporally(">", begin))
	g.Eventually(func() []string { return blocked(b) }, "60s").Should(ContainElement(MatchRegexp("(patch|delete) nodes")))
	cancel()

	g.Expect(b.Machines.Scale(ctx, 1)).To(Succeed())
	g.Eventually(func() []string { return blocked(b) }, "30s").Should(ContainElement("create nodes"))
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kyverno-resource-validating-webhook-cfg"}}
	g.Expect(b.Shoot.Client().Get(ctx, client.ObjectKeyFromObject(configuration), configuration)).To(Succeed())
	g.Expect(configuration.Webhooks).NotTo(BeEmpty(), "Kyverno leaves its webhooks behind")
}

func kyvernoPods(g *WithT, ctx context.Context, b *Bench, component string) []corev1.Pod {
	pods := &corev1.PodList{}
	g.Expect(b.Shoot.Client().List(ctx, pods, client.InNamespace(KyvernoNamespace), client.MatchingLabels{"app.kubernetes.io/component": component})).To(Succeed())
	g.Expect(pods.Items).NotTo(BeEmpty())
	return pods.Items
}

func readySince(pod corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}
