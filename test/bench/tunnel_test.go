// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"context"
	"regexp"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	. "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

func testTunnel(t *testing.T, ctx context.Context, b *Bench) {
	g := NewWithT(t)
	hook, err := b.InstallWebhook(ctx, WebhookOptions{
		TimeoutSeconds: ptr.To[int32](1),
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "default"}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	call := func() error {
		return b.Shoot.Client().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-", Namespace: "default"}}, client.DryRunAll)
	}
	calling := "^" + regexp.QuoteMeta(`Internal error occurred: failed calling webhook "hook.bench.example.com": failed to call webhook: Post "https://hook.hook.svc:443/admit?timeout=1s": `)

	g.Eventually(func() (int, error) { err := call(); return len(hook.Calls()), err }).Should(BeNumerically(">", 0))
	hook.SetAnswer(Deny("no"))
	g.Expect(call()).To(MatchError(`admission webhook "hook.bench.example.com" denied the request: no`))
	hook.SetAnswer(Allow)
	vpn := vpnPod(g, ctx, b)

	for _, c := range []struct {
		name  string
		fail  func()
		want  string
		least time.Duration
	}{
		{"cut", b.Tunnel.Cut, calling + `proxy error from 127\.0\.0\.1:\d+ while dialing 100\.64\.\d+\.\d+:8443, code 503: 503 Service Unavailable$`, 0},
		{"hanging", b.Tunnel.Hang, calling + `(context deadline exceeded|net/http: request canceled)`, time.Second},
		{"a black hole", b.Tunnel.BlackHole, calling + `(context deadline exceeded|net/http: request canceled)`, time.Second},
	} {
		t.Run("while it is "+c.name, func(t *testing.T) {
			g := NewWithT(t)
			c.fail()
			for range 2 { // the first call may use a connection that was kept
				begin, calls := time.Now(), len(hook.Calls())
				g.Expect(call()).To(MatchError(MatchRegexp(c.want)))
				g.Expect(time.Since(begin)).To(BeNumerically(">=", c.least))
				g.Expect(hook.Calls()).To(HaveLen(calls))
			}
			g.Eventually(readyOf(ctx, b, vpn), "3s").Should(Equal(corev1.ConditionFalse))
			b.Tunnel.Mend()
			g.Eventually(call, "3s").Should(Succeed())
			g.Eventually(readyOf(ctx, b, vpn), "3s").Should(Equal(corev1.ConditionTrue))
		})
	}

	hook.SetDelay(5 * time.Second)
	g.Expect(call()).To(MatchError(ContainSubstring("context deadline exceeded")))
	hook.SetDelay(0)
	g.Expect(hook.Scale(ctx, 0)).To(Succeed())
	g.Eventually(call, "10s", "200ms").Should(MatchError(ContainSubstring(`no endpoints available for service "hook"`)))
	g.Expect(b.Shoot.Client().Delete(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: hook.Name}})).To(Succeed())
}

func vpnPod(g *WithT, ctx context.Context, b *Bench) *corev1.Pod {
	pods := &corev1.PodList{}
	g.Expect(b.Shoot.Client().List(ctx, pods, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{"app": "vpn-shoot"})).To(Succeed())
	g.Expect(pods.Items).To(HaveLen(1))
	return &pods.Items[0]
}
