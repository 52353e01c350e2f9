// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/go-logr/logr/testr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	. "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

// TestBench runs its parts one after the other on one bench; each leaves the bench as it found it.
func TestBench(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	begin := time.Now()
	b, err := New(ctx, Options{Log: testr.New(t), VMDeletion: 2 * time.Second})
	g.Expect(err).NotTo(HaveOccurred())
	t.Logf("started in %s", time.Since(begin).Round(time.Millisecond))
	t.Cleanup(func() { _ = b.Close() })

	for _, part := range []struct {
		name string
		test func(*testing.T, context.Context, *Bench)
	}{
		{"the audit log knows who wrote what with what answer", testAudit},
		{"a webhook is reached only through the tunnel", testTunnel},
		{"a pod is ready exactly when its process answers", testReadiness},
		{"a pod without a runner stays pending and can be deleted", testPending},
		{"the loss of a VM leaves its node and its pods", testKill},
		{"machines go although a dead webhook refuses evictions, and come only when it allows nodes", testScale},
		{"the API server keeps data and port while it is down", testRestart},
		{"rotated certificates replace the old ones", testRotation},
	} {
		t.Run(part.name, func(t *testing.T) {
			begin := time.Now()
			part.test(t, ctx, b)
			t.Logf("took %s", time.Since(begin).Round(time.Millisecond))
		})
	}

	begin = time.Now()
	g.Expect(b.Close()).To(Succeed())
	t.Logf("closed in %s", time.Since(begin).Round(time.Millisecond))
	g.Expect(b.Close()).To(Succeed(), "a second time")
	expectNothingLeft(g)
}

func TestNewLeavesNothingBehind(t *testing.T) {
	for _, c := range []struct {
		name    string
		options Options
		timeout time.Duration
		want    string
	}{
		{"when it cannot go on with running API servers", Options{SeedCRDs: []string{"none.example.com_nothings"}}, time.Minute, "failed to read CRD"},
		{"when the caller loses patience", Options{}, 2 * time.Second, "context deadline exceeded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv("TMPDIR", t.TempDir())
			ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
			defer cancel()
			_, err := New(ctx, c.options)
			g.Expect(err).To(MatchError(ContainSubstring(c.want)))
			expectNothingLeft(g)
		})
	}
}

// expectNothingLeft looks for children and listeners of this process and for files in TMPDIR.
func expectNothingLeft(g *WithT) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	g.Expect(err).NotTo(HaveOccurred())
	for _, path := range stats {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // ended
		}
		// pid (name) state ppid …
		name, rest, _ := strings.Cut(string(content), ") ")
		g.Expect(strings.Fields(rest)[1]).NotTo(Equal(strconv.Itoa(os.Getpid())), "a child is left: %s)", name)
	}
	g.Expect(listeners(g)).To(BeEmpty(), "local addresses of listeners")
	files, err := os.ReadDir(os.Getenv("TMPDIR"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(BeEmpty())
}

// listeners are the local addresses this process listens on, as /proc/net/tcp writes them.
func listeners(g *WithT) []string {
	content, err := os.ReadFile("/proc/self/net/tcp")
	g.Expect(err).NotTo(HaveOccurred())
	own := map[string]bool{}
	descriptors, err := os.ReadDir("/proc/self/fd")
	g.Expect(err).NotTo(HaveOccurred())
	for _, d := range descriptors {
		target, _ := os.Readlink("/proc/self/fd/" + d.Name())
		own[target] = true
	}
	var addresses []string
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if fields[3] == "0A" && own["socket:["+fields[9]+"]"] {
			addresses = append(addresses, fields[1])
		}
	}
	return addresses
}

func testAudit(t *testing.T, ctx context.Context, b *Bench) {
	g := NewWithT(t)
	begin := time.Now()
	user, err := client.New(b.Shoot.ConfigFor("writer", "system:masters"), client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "audited"}}
	g.Expect(user.Create(ctx, configuration)).To(Succeed())
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	g.Expect(user.Patch(ctx, configuration, patch, client.DryRunAll)).To(Succeed())
	g.Expect(user.Patch(ctx, configuration, patch)).To(Succeed())
	g.Expect(user.Get(ctx, client.ObjectKeyFromObject(configuration), configuration)).To(Succeed())
	g.Expect(user.Patch(ctx, configuration, client.RawPatch(types.MergePatchType, []byte(`{"webhooks":[{}]}`)))).NotTo(Succeed())
	g.Expect(b.Shoot.Client().Delete(ctx, configuration)).To(Succeed())

	filter := Filter{User: "writer", Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations", Name: "audited", Since: begin}
	g.Eventually(func() ([]string, error) {
		writes, err := b.Shoot.Audit().Writes(filter)
		var seen []string
		for _, w := range writes {
			seen = append(seen, w.Verb+" "+strconv.Itoa(int(w.ResponseStatus.Code)))
		}
		return seen, err
	}).Should(Equal([]string{"create 201", "patch 200", "patch 422"}), "neither the dry run nor the admin's deletion")

	filter.Verbs = []string{"patch"}
	writes, err := b.Shoot.Audit().Writes(filter)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(writes[0].RequestObject.Raw)).To(MatchJSON(patch2json(patch)))
	g.Expect(string(writes[0].ResponseObject.Raw)).To(ContainSubstring(`"labels":{"a":"b"}`))
	filter.Verbs, filter.Failed = nil, true
	g.Expect(b.Shoot.Audit().Writes(filter)).To(HaveLen(1))
	filter.Failed, filter.Verbs = false, []string{"get"}
	g.Expect(b.Shoot.Audit().Events(filter)).To(HaveLen(1), "reads of other users are kept")
	filter.Until = begin.Add(-time.Second)
	g.Expect(b.Shoot.Audit().Events(filter)).To(BeEmpty())

	testOpenWatches(g, ctx, b)
}

func patch2json(p client.Patch) []byte {
	data, _ := p.Data(nil)
	return data
}

func testOpenWatches(g *WithT, ctx context.Context, b *Bench) {
	watcher, err := client.NewWithWatch(b.Shoot.ConfigFor("watcher", "system:masters"), client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	open := func() (int, error) {
		watches, err := b.Shoot.Audit().OpenWatches(Filter{User: "watcher"})
		return len(watches), err
	}
	before, err := b.Shoot.Connections(os.Getpid())
	g.Expect(err).NotTo(HaveOccurred())
	w, err := watcher.Watch(ctx, &corev1.ConfigMapList{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(open).Should(Equal(1))
	g.Expect(b.Shoot.Connections(os.Getpid())).To(BeNumerically(">", before))
	w.Stop()
	g.Eventually(open).Should(BeZero())
}

func testRestart(t *testing.T, ctx context.Context, b *Bench) {
	g := NewWithT(t)
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept", Namespace: "default"}}
	g.Expect(b.Shoot.Client().Create(ctx, kept)).To(Succeed())
	config := b.Shoot.Config()
	g.Expect(b.Shoot.StopControllerManager(ctx)).To(Succeed())
	begin := time.Now()
	g.Expect(b.Shoot.StopAPIServer(ctx)).To(Succeed())
	t.Logf("stopped in %s", time.Since(begin).Round(time.Millisecond))
	g.Expect(b.Shoot.Running()).To(BeFalse())
	g.Expect(b.Shoot.Client().Get(ctx, client.ObjectKeyFromObject(kept), kept)).To(MatchError(ContainSubstring("connection refused")))
	g.Expect(b.Seed.Running()).To(BeTrue())

	begin = time.Now()
	g.Expect(b.Shoot.StartAPIServer(ctx)).To(Succeed())
	t.Logf("started in %s", time.Since(begin).Round(time.Millisecond))
	g.Expect(b.Shoot.Running()).To(BeTrue())
	again, err := client.New(config, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.Get(ctx, client.ObjectKeyFromObject(kept), kept)).To(Succeed(), "same port, same certificates, same data")
	g.Expect(b.Shoot.StartControllerManager(ctx)).To(Succeed())
	g.Expect(again.Delete(ctx, kept)).To(Succeed())
}

func testRotation(t *testing.T, ctx context.Context, b *Bench) {
	g := NewWithT(t)
	old, oldBundle := b.Shoot.Config(), b.Shoot.CABundle()
	namespaces := &corev1.NamespaceList{}
	g.Expect(b.Shoot.StopScheduler(ctx)).To(Succeed())
	g.Expect(b.Shoot.StopControllerManager(ctx)).To(Succeed())
	g.Expect(b.Shoot.StopAPIServer(ctx)).To(Succeed())
	g.Expect(b.Shoot.RotateCertificates(ctx)).To(Succeed())
	g.Expect(b.Shoot.CABundle()).To(Equal(oldBundle), "not before the start")
	g.Expect(b.Shoot.StartAPIServer(ctx)).To(Succeed())
	g.Expect(b.Shoot.StartControllerManager(ctx)).To(Succeed())
	g.Expect(b.Shoot.StartScheduler(ctx)).To(Succeed())

	g.Expect(b.Shoot.CABundle()).NotTo(Equal(oldBundle))
	g.Expect(b.Shoot.Client().List(ctx, namespaces)).To(Succeed())
	stale, err := client.New(old, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(stale.List(ctx, namespaces)).To(MatchError(ContainSubstring("certificate signed by unknown authority")))
	old.CAData = b.Shoot.CABundle()
	stale, err = client.New(old, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(stale.List(ctx, namespaces)).To(Satisfy(apierrors.IsUnauthorized))
}

// createPod creates a pod in the namespace default.
func createPod(t *testing.T, ctx context.Context, b *Bench, pod *corev1.Pod) {
	g := NewWithT(t)
	pod.Namespace = "default"
	pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](2)
	g.Expect(b.Shoot.Client().Create(ctx, pod)).To(Succeed())
}
