// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	. "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

// backend is a Runner of one pod by name, whose process answers its probe as healthy says.
type backend struct {
	name    string
	healthy atomic.Bool
	starts  atomic.Int32
	process *backendProcess // the newest
}

type backendProcess struct {
	server *httptest.Server
	end    sync.Once
	done   chan struct{}
}

func (b *backend) Matches(pod *corev1.Pod) bool { return pod.Name == b.name }

func (b *backend) Start(context.Context, *corev1.Pod, string) (Process, error) {
	b.starts.Add(1)
	b.process = &backendProcess{done: make(chan struct{}), server: httptest.NewServer(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) {
			if !b.healthy.Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}))}
	return b.process, nil
}

func (p *backendProcess) Ports() map[int32]int {
	_, port, _ := net.SplitHostPort(p.server.Listener.Addr().String())
	number, _ := strconv.Atoi(port)
	return map[int32]int{80: number}
}
func (p *backendProcess) Pid() int              { return 0 }
func (p *backendProcess) Done() <-chan struct{} { return p.done }
func (p *backendProcess) Stop(time.Duration)    { p.Kill() }
func (p *backendProcess) Kill() {
	p.end.Do(func() {
		p.server.Close()
		close(p.done)
	})
}

func probedPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Image: "none", Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 80}},
		ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromString("web")},
		}},
	}}}}
}

// readyOf is the status of a pod's Ready condition and of its first container.
func readyOf(ctx context.Context, b *Bench, pod *corev1.Pod) func() (corev1.ConditionStatus, error) {
	return func() (corev1.ConditionStatus, error) {
		err := b.Shoot.Client().Get(ctx, client.ObjectKeyFromObject(pod), pod)
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady {
				return c.Status, err
			}
		}
		return "", err
	}
}

func testReadiness(t *testing.T, ctx context.Context, b *Bench) {
	g := NewWithT(t)
	runner := &backend{name: "probed"}
	b.Machines.Register(runner)
	pod := probedPod(runner.name)
	createPod(t, ctx, b, pod)
	ready := readyOf(ctx, b, pod)

	g.Eventually(func() (corev1.PodPhase, error) { _, err := ready(); return pod.Status.Phase, err }, "10s").Should(Equal(corev1.PodRunning))
	g.Consistently(ready, "1500ms", "300ms").Should(Equal(corev1.ConditionFalse), "while its process says no")
	runner.healthy.Store(true)
	g.Eventually(ready, "3s").Should(Equal(corev1.ConditionTrue))
	g.Expect(pod.Status.PodIP).To(HavePrefix("100.64."))
	runner.healthy.Store(false)
	g.Eventually(ready, "3s").Should(Equal(corev1.ConditionFalse))
	runner.healthy.Store(true)
	g.Eventually(ready, "3s").Should(Equal(corev1.ConditionTrue))

	died := time.Now()
	runner.process.Kill()
	g.Eventually(ready, "3s", "20ms").Should(Equal(corev1.ConditionFalse), "when its process has died")
	g.Eventually(ready, "5s").Should(Equal(corev1.ConditionTrue), "when it was started again")
	g.Expect(runner.starts.Load()).To(BeEquivalentTo(2))
	g.Expect(pod.Status.ContainerStatuses[0].RestartCount).To(BeEquivalentTo(1))
	g.Expect(b.Machines.Ended(runner.Matches)).To(BeTemporally("~", died, time.Second))

	g.Expect(b.Shoot.Client().Delete(ctx, pod)).To(Succeed())
	g.Eventually(func() bool { return gone(ctx, b, pod) }, "5s").Should(BeTrue())
	g.Expect(runner.process.done).To(BeClosed())
}

func gone(ctx context.Context, b *Bench, object client.Object) bool {
	return apierrors.IsNotFound(b.Shoot.Client().Get(ctx, client.ObjectKeyFromObject(object), object))
}

func testPending(t *testing.T, ctx context.Context, b *Bench) {
	g := NewWithT(t)
	pod := probedPod("unknown")
	createPod(t, ctx, b, pod)
	g.Eventually(func() (string, error) {
		err := b.Shoot.Client().Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return pod.Spec.NodeName, err
	}, "10s").ShouldNot(BeEmpty(), "it is scheduled")
	g.Consistently(func() (corev1.PodPhase, error) {
		err := b.Shoot.Client().Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return pod.Status.Phase, err
	}, "1500ms", "300ms").Should(Equal(corev1.PodPending))
	g.Expect(b.Shoot.Client().Delete(ctx, pod)).To(Succeed())
	g.Eventually(func() bool { return gone(ctx, b, pod) }, "5s").Should(BeTrue())
}

func testKill(t *testing.T, ctx context.Context, b *Bench) {
	g := NewWithT(t)
	lost := b.Machines.Nodes()[0]
	runner := &backend{name: "lost"}
	runner.healthy.Store(true)
	b.Machines.Register(runner)
	pod := probedPod(runner.name)
	createPod(t, ctx, b, pod)
	g.Eventually(readyOf(ctx, b, pod), "10s").Should(Equal(corev1.ConditionTrue))

	b.Machines.Kill(lost)
	g.Expect(runner.process.done).To(BeClosed())
	g.Expect(b.Machines.Nodes()).To(BeEmpty())
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: lost}}
	g.Expect(b.Shoot.Client().Get(ctx, client.ObjectKeyFromObject(node), node)).To(Succeed())
	g.Expect(readyOf(ctx, b, pod)()).To(Equal(corev1.ConditionTrue), "nobody is left to tell")
	g.Expect(b.Tunnel.Works()).To(BeFalse(), "vpn-shoot was on that machine")

	g.Expect(b.Machines.Scale(ctx, 0)).To(Succeed())
	g.Expect(gone(ctx, b, node)).To(BeTrue())
	removeOrphans(g, ctx, b)
	g.Expect(b.Machines.Scale(ctx, 1)).To(Succeed())
	g.Expect(b.Machines.Nodes()).NotTo(ContainElement(lost))
	g.Expect(b.Machines.WaitReady(ctx)).To(Succeed())
	g.Eventually(b.Tunnel.Works, "20s").Should(BeTrue())
}

// removeOrphans deletes pods of nodes that are gone: kube-controller-manager does it after 40 to 60 s.
func removeOrphans(g *WithT, ctx context.Context, b *Bench) {
	pods := &corev1.PodList{}
	g.Expect(b.Shoot.Client().List(ctx, pods)).To(Succeed())
	for _, pod := range pods.Items {
		if pod.Spec.NodeName != "" {
			g.Expect(client.IgnoreNotFound(b.Shoot.Client().Delete(ctx, &pod, client.GracePeriodSeconds(0)))).To(Succeed())
		}
	}
}

func testScale(t *testing.T, ctx context.Context, b *Bench) {
	g := NewWithT(t)
	hook, err := b.InstallWebhook(ctx, WebhookOptions{Name: "everything", TimeoutSeconds: ptr.To[int32](1), Rules: []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods", "pods/eviction", "nodes"}},
	}}})
	g.Expect(err).NotTo(HaveOccurred())
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: hook.Name}}
	old := b.Machines.Nodes()[0]
	b.Tunnel.Cut()
	b.Machines.ResetBlocked()

	// The hook's rule on nodes refuses their deletion too: machine-controller-manager insists.
	removal := make(chan error)
	begin := time.Now()
	go func() { removal <- b.Machines.Scale(ctx, 0) }()
	g.Eventually(func() []string { return blocked(b) }, "30s").Should(ContainElement("patch nodes"), "to cordon")
	withoutNodes(g, ctx, b, configuration)
	g.Eventually(removal, "60s").Should(Receive(BeNil()))
	t.Logf("removed in %s", time.Since(begin).Round(time.Millisecond))
	g.Expect(gone(ctx, b, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: old}})).To(BeTrue())
	g.Expect(blocked(b)).NotTo(ContainElement("create pods/eviction"), "a failed cordon ends the drain")
	g.Expect(hook.Ended()).To(BeTemporally(">", begin), "with its machine")

	testJoin(g, ctx, b, configuration)
	testRefusedEviction(g, ctx, b, hook)

	g.Expect(b.Shoot.Client().Delete(ctx, configuration)).To(Succeed())
	g.Expect(b.Shoot.Client().Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hook.Namespace}})).To(Succeed())
	removeOrphans(g, ctx, b)
	b.Tunnel.Mend()
	g.Expect(b.Machines.Scale(ctx, 1)).To(Succeed())
	g.Eventually(b.Tunnel.Works, "20s").Should(BeTrue())
}

// withoutNodes takes nodes out of the rule of a configuration.
func withoutNodes(g *WithT, ctx context.Context, b *Bench, configuration *admissionregistrationv1.ValidatingWebhookConfiguration) {
	g.Expect(b.Shoot.Client().Get(ctx, client.ObjectKeyFromObject(configuration), configuration)).To(Succeed())
	configuration.Webhooks[0].Rules[0].Resources = []string{"pods", "pods/eviction"}
	g.Expect(b.Shoot.Client().Update(ctx, configuration)).To(Succeed())
}

// testJoin: a node joins when the dead hook no longer matches nodes.
func testJoin(g *WithT, ctx context.Context, b *Bench, configuration *admissionregistrationv1.ValidatingWebhookConfiguration) {
	configuration.Webhooks[0].Rules[0].Resources = []string{"pods", "pods/eviction", "nodes"}
	g.Expect(b.Shoot.Client().Update(ctx, configuration)).To(Succeed())
	b.Machines.ResetBlocked()
	g.Expect(b.Machines.Scale(ctx, 1)).To(Succeed())
	g.Eventually(func() []string { return blocked(b) }, "5s").Should(Equal([]string{"create nodes"}))
	refusal := b.Machines.Blocked()[0]
	g.Expect(refusal.User).To(Equal("system:node:" + b.Machines.Nodes()[0]))
	g.Expect(refusal.Text).To(ContainSubstring(`failed calling webhook "everything.bench.example.com"`))
	withoutNodes(g, ctx, b, configuration)
	g.Expect(b.Machines.WaitReady(ctx)).To(Succeed())
}

// testRefusedEviction: a hook that refuses the eviction of a pod does not hold a machine.
func testRefusedEviction(g *WithT, ctx context.Context, b *Bench, hook *Webhook) {
	runner := &backend{name: "stays"}
	runner.healthy.Store(true)
	b.Machines.Register(runner)
	b.Machines.ResetBlocked()
	pod := probedPod(runner.name)
	pod.Namespace = "default"
	b.Tunnel.Mend()
	// The pods of the hook are gone with their machine: it serves again only on another one, and only once it is open.
	open(g, ctx, b, hook, admissionregistrationv1.Ignore)
	removeOrphans(g, ctx, b)
	g.Expect(b.Shoot.Client().Create(ctx, pod)).To(Succeed())
	g.Eventually(readyOf(ctx, b, pod), "20s").Should(Equal(corev1.ConditionTrue))
	open(g, ctx, b, hook, admissionregistrationv1.Fail)
	b.Tunnel.Cut()
	node := b.Machines.Nodes()[0]
	g.Expect(b.Machines.Scale(ctx, 0)).To(Succeed())
	g.Expect(blocked(b)).To(ContainElement("create pods/eviction"))
	g.Expect(gone(ctx, b, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})).To(BeTrue())
	g.Expect(runner.process.done).To(BeClosed())
	g.Expect(gone(ctx, b, pod)).To(BeFalse(), "its object is left")
}

func open(g *WithT, ctx context.Context, b *Bench, hook *Webhook, policy admissionregistrationv1.FailurePolicyType) {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: hook.Name}}
	g.Expect(b.Shoot.Client().Get(ctx, client.ObjectKeyFromObject(configuration), configuration)).To(Succeed())
	configuration.Webhooks[0].FailurePolicy = &policy
	g.Expect(b.Shoot.Client().Update(ctx, configuration)).To(Succeed())
}

// blocked lists verb and resource of what was blocked, each once.
func blocked(b *Bench) []string {
	var seen []string
	known := map[string]bool{}
	for _, refusal := range b.Machines.Blocked() {
		if what := refusal.Verb + " " + refusal.Resource; !known[what] {
			known[what] = true
			seen = append(seen, what)
		}
	}
	return seen
}
