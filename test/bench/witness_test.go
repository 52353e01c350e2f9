// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	. "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

// watchedHook is the hook that the tests below change.
var watchedHook = HookID{Kind: KindMutating, Configuration: "witnessed", Hook: "a.example.com"}

func TestWitness(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	b, err := New(ctx, Options{Log: testr.New(t), Machines: -1})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(b.Close()).To(Succeed()) })
	g.Expect(b.Shoot.Client().Create(ctx, configurationOf(watchedHook))).To(Succeed())
	w, err := b.Witness(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(w.Close)
	patch := func(body string, options ...client.PatchOption) {
		t.Helper()
		g.Expect(b.Shoot.Client().Patch(ctx, configurationOf(watchedHook), client.RawPatch(types.StrategicMergePatchType, []byte(body)), options...)).To(Succeed())
	}
	before, err := b.Snapshot(ctx)
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(w.Hooks()).To(Equal([]HookID{watchedHook}))
	first := w.Now(watchedHook)
	g.Expect(first).To(And(HaveField("FailurePolicy", "Fail"), HaveField("TimeoutSeconds", int32(10)), HaveField("Exists", true), HaveField("UID", Not(BeEmpty()))))

	patch(`{"metadata":{"labels":{"a":"b"}}}`)
	for range 3 {
		patch(`{"webhooks":[{"name":"a.example.com","failurePolicy":"Ignore"}]}`)
		patch(`{"webhooks":[{"name":"a.example.com","failurePolicy":"Fail"}]}`)
	}
	g.Expect(w.Await(ctx, func() bool { return len(w.History(watchedHook)) == 7 })).To(Succeed(), "each change, and no others")
	g.Expect(b.Shoot.StopAPIServer(ctx)).To(Succeed())
	stopped := time.Now()
	g.Expect(b.Shoot.StartAPIServer(ctx)).To(Succeed())
	patch(`{"webhooks":[{"name":"a.example.com","timeoutSeconds":1,"clientConfig":{"caBundle":"YQ=="}}],"metadata":{"annotations":{"hibernation-guard.extensions.gardener.cloud/originals":"x"}}}`,
		client.FieldOwner("shoot-hibernation-guard"))
	g.Expect(w.Await(ctx, func() bool { return w.Now(watchedHook).TimeoutSeconds == 1 })).To(Succeed())
	g.Expect(w.At(watchedHook, stopped)).To(And(HaveField("FailurePolicy", "Fail"), HaveField("TimeoutSeconds", int32(10))))
	g.Expect(w.At(watchedHook, first.At.Add(-time.Nanosecond))).To(BeZero())

	after, err := b.Snapshot(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(before.Diff(before)).To(BeEmpty())
	g.Expect(fields(before.Diff(after))).To(ConsistOf("timeoutSeconds", "clientConfig.caBundle", "metadata.labels.a",
		"metadata.annotations.hibernation-guard.extensions.gardener.cloud/originals",
		"metadata.managedFields.bench/Update", "metadata.managedFields.shoot-hibernation-guard/Update"))
	g.Expect(before.Leftovers()).To(BeEmpty())
	g.Expect(fields(after.Leftovers())).To(ConsistOf("metadata.annotations.hibernation-guard.extensions.gardener.cloud/originals",
		"metadata.managedFields.shoot-hibernation-guard/Update"))

	g.Expect(b.Shoot.Client().Delete(ctx, configurationOf(watchedHook))).To(Succeed())
	g.Expect(w.Await(ctx, func() bool { return !w.Now(watchedHook).Exists })).To(Succeed())
	g.Expect(w.Now(watchedHook).UID).To(Equal(first.UID))
	g.Expect(w.Err()).NotTo(HaveOccurred())
	gone, err := b.Snapshot(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(fields(before.Diff(gone))).To(Equal([]string{FieldPresence, FieldPresence}), "of the configuration and of its hook")
}

func configurationOf(id HookID) *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: id.Configuration},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: id.Hook, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "none"}},
		}},
	}
}

func fields(differences []Difference) []string {
	var names []string
	for _, d := range differences {
		names = append(names, d.Field)
	}
	return names
}
