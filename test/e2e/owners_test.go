//go:build e2e

// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

func TestOthersWriteToo(t *testing.T) {
	s := newStage(t, bench.Options{}, shortStabilization)
	w := s.installInHouse(admissionregistrationv1.OperationAll)

	s.story("an ignored Shoot's Cluster says that it is to hibernate", func() {
		begin := time.Now()
		s.gardenlet.Edit(func(shoot *gardencorev1beta1.Shoot) {
			metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, v1beta1constants.ShootIgnore, "true")
			shoot.Spec.Hibernation.Enabled = ptr.To(true)
		})
		s.reconcile()
		s.controller.Stop()
		s.Expect(s.controller.Start(s.ctx)).To(Succeed())
		s.expectUntouched(begin, 5*time.Second)
		s.gardenlet.Edit(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Hibernation.Enabled = ptr.To(false) })
		s.reconcile()
		s.expectUntouched(begin, 3*time.Second)
		s.gardenlet.Edit(func(shoot *gardencorev1beta1.Shoot) { delete(shoot.Annotations, v1beta1constants.ShootIgnore) })
		s.reconcile()
		s.expectUntouched(begin, time.Second)
	})
	s.playHelm(w)
	s.storyBut(owners, "GitOps closes every 5 s what has no backend", func() {
		s.Expect(w.pods.Scale(s.ctx, 0)).To(Succeed())
		s.Expect(w.nodes.Scale(s.ctx, 0)).To(Succeed())
		stop := s.gitOps(w)
		defer stop()
		s.hibernate()
		s.wakeUp()
		for _, name := range []string{w.pods.Name, w.nodes.Name} {
			s.Eventually(func() []string { return s.reasons(name) }).WithTimeout(2*time.Minute).
				Should(ContainElement(v1alpha1.ReasonRevertedByOwner), name)
		}
		s.Expect(s.messages(w.pods.Name)).To(ContainElement(ContainSubstring("gitops-apply")))
		s.Expect(s.messages(w.nodes.Name)).To(ContainElement(ContainSubstring("gitops-update")))
		s.Expect(w.pods.Scale(s.ctx, 1)).To(Succeed())
		s.Expect(w.nodes.Scale(s.ctx, 1)).To(Succeed())
	})
}

// expectUntouched expects that the extension writes nothing to the Shoot, and has not done so since begin.
func (s *stage) expectUntouched(begin time.Time, duration time.Duration) {
	s.t.Helper()
	s.Consistently(func() (int, error) {
		writes, err := s.bench.Shoot.Audit().Writes(bench.Filter{UserAgent: bench.ControllerAgent, Since: begin})
		return len(writes), err
	}).WithTimeout(duration).WithPolling(500 * time.Millisecond).Should(BeZero())
	s.Expect(s.state().Cycle).To(BeNil())
}

// messages are the messages of the report on the hooks of a configuration.
func (s *stage) messages(configuration string) []string {
	var out []string
	for _, h := range s.report().Hooks {
		if h.Configuration == configuration {
			out = append(out, h.Message)
		}
	}
	return out
}

// gitOps puts the present content of both configurations back every 5 s from outside of the cluster: of one by forced
// server-side apply, of the other by update.
func (s *stage) gitOps(w inHouse) (stop func()) {
	applied := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	s.Expect(s.bench.Shoot.Client().Get(s.ctx, client.ObjectKey{Name: w.pods.Name}, applied)).To(Succeed())
	updated := &admissionregistrationv1.MutatingWebhookConfiguration{}
	s.Expect(s.bench.Shoot.Client().Get(s.ctx, client.ObjectKey{Name: w.nodes.Name}, updated)).To(Succeed())
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			// The API server may be down.
			_ = s.apply(ctx, "gitops-apply", applied.Name, applied.Webhooks[0], client.ForceOwnership)
			_ = s.update(ctx, "gitops-update", updated)
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Second):
			}
		}
	}()
	return func() { cancel(); <-done }
}

func (s *stage) update(ctx context.Context, manager string, content *admissionregistrationv1.MutatingWebhookConfiguration) error {
	now := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := s.bench.Shoot.Client().Get(ctx, client.ObjectKeyFromObject(content), now); err != nil {
		return err
	}
	now.Webhooks = content.DeepCopy().Webhooks
	return s.bench.Shoot.Client().Update(ctx, now, client.FieldOwner(manager))
}

// apply is a server-side apply of a ValidatingWebhookConfiguration with one hook.
func (s *stage) apply(ctx context.Context, manager, name string, hook admissionregistrationv1.ValidatingWebhook, o ...client.ApplyOption) error {
	entry, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&hook)
	if err != nil {
		return err
	}
	configuration := &unstructured.Unstructured{Object: map[string]any{"webhooks": []any{entry}}}
	configuration.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind(bench.KindValidating))
	configuration.SetName(name)
	return s.bench.Shoot.Client().Apply(ctx, client.ApplyConfigurationFromUnstructured(configuration),
		append(o, client.FieldOwner(manager))...)
}

// playHelm plays a configuration that helm applies before and after a full cycle: without a conflict, without a drift.
func (s *stage) playHelm(w inHouse) {
	const name = "from-helm"
	hook := admissionregistrationv1.ValidatingWebhook{
		Name: name + ".bench.example.com", FailurePolicy: ptr.To(admissionregistrationv1.Fail), TimeoutSeconds: ptr.To[int32](8),
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			CABundle: w.pods.CABundle,
			Service:  &admissionregistrationv1.ServiceReference{Namespace: w.pods.Namespace, Name: w.pods.Name, Path: ptr.To("/admit")},
		},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}},
		SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
	}
	get := func() *admissionregistrationv1.ValidatingWebhookConfiguration {
		s.t.Helper()
		now := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		s.Expect(s.bench.Shoot.Client().Get(s.ctx, client.ObjectKey{Name: name}, now)).To(Succeed())
		return now
	}
	s.WithT, s.t = NewWithT(s.parent), s.parent
	s.Expect(s.apply(s.ctx, "helm", name, hook)).To(Succeed())
	s.story("helm owns a configuration", func() {
		s.hibernate()
		s.expectOpenAsleep(name)
		s.wakeUp()
	})
	s.parent.Run("helm applies after it: the same, something else, less", func(t *testing.T) {
		s.WithT, s.t = NewWithT(t), t
		before := get()
		s.Expect(s.apply(s.ctx, "helm", name, hook)).To(Succeed())
		s.Expect(get().ResourceVersion).To(Equal(before.ResourceVersion), "a drift")
		hook.FailurePolicy, hook.TimeoutSeconds = ptr.To(admissionregistrationv1.Ignore), ptr.To[int32](4)
		s.Expect(s.apply(s.ctx, "helm", name, hook)).To(Succeed())
		s.Expect(get().Webhooks[0]).To(And(HaveField("FailurePolicy", hook.FailurePolicy), HaveField("TimeoutSeconds", hook.TimeoutSeconds)))
		hook.FailurePolicy, hook.TimeoutSeconds = nil, nil
		s.Expect(s.apply(s.ctx, "helm", name, hook)).To(Succeed())
		s.Expect(get().Webhooks[0]).To(And(HaveField("FailurePolicy", ptr.To(admissionregistrationv1.Fail)), HaveField("TimeoutSeconds", ptr.To[int32](10))))
	})
	s.WithT, s.t = NewWithT(s.parent), s.parent
	s.Expect(s.bench.Shoot.Client().Delete(s.ctx, get())).To(Succeed())
}
