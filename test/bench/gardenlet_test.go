// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"errors"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

func TestGardenletPlaysTheLifeOfAShoot(t *testing.T) {
	s := newStage(t, bench.GardenletOptions{ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"kind":"GuardConfig"}`)}})
	s.timed(t, "creation", s.gardenlet.Reconcile)
	s.Expect(slices.Compact(s.extension.taken())).To(Equal([]string{"reconcile"}))
	s.expectAwake()
	extension, err := s.getExtension()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(string(extension.Spec.ProviderConfig.Raw)).To(Equal(`{"kind":"GuardConfig"}`))
	namespace := &corev1.Namespace{}
	s.Expect(s.bench.Seed.Client().Get(s.ctx, client.ObjectKey{Name: s.bench.Namespace}, namespace)).To(Succeed())
	s.Expect(namespace.Labels).To(And(HaveKeyWithValue("gardener.cloud/role", "shoot"), HaveKeyWithValue("extensions.gardener.cloud/"+bench.ExtensionType, "true")))

	s.timed(t, "reconcile", s.gardenlet.Reconcile)
	s.Expect(slices.Compact(s.extension.taken())).To(Equal([]string{"reconcile"}))

	nodes := s.bench.Machines.Nodes()
	s.Expect(nodes).To(HaveLen(1))
	var seen *gardencorev1beta1.Shoot
	s.extension.failWith(func(string) error {
		seen = s.cluster()
		if len(s.bench.Machines.Nodes()) != 1 {
			return errors.New("the workers are gone before the extension was asked")
		}
		return nil
	})
	s.forgetSteps()
	s.timed(t, "hibernation", s.gardenlet.Hibernate)
	s.extension.failWith(nil)
	s.Expect(slices.Compact(s.extension.taken())).To(Equal([]string{"reconcile"}))
	s.Expect(*seen.Spec.Hibernation.Enabled).To(BeTrue())
	s.Expect(seen.Status.IsHibernated).To(BeFalse())
	s.Expect(seen.Status.LastOperation.State).To(Equal(gardencorev1beta1.LastOperationStateProcessing))
	s.Expect(s.index(bench.StepWaitHibernatedExtension)).To(BeNumerically("<", s.index(bench.StepDeployWorkers)))
	s.Expect(s.index(bench.StepWaitWorkers)).To(BeNumerically("<", s.index(bench.StepHibernateControlPlane)))
	s.expectAsleep()

	s.timed(t, "reconcile asleep", s.gardenlet.Reconcile)
	s.Expect(slices.Compact(s.extension.taken())).To(Equal([]string{"reconcile"}))
	s.expectAsleep()

	s.Expect(s.gardenlet.ExpireTokens(s.ctx)).To(Succeed())
	s.Expect(s.gardenlet.RotateCredentials(s.ctx)).To(Succeed())
	s.timed(t, "wake-up", s.gardenlet.WakeUp)
	s.Expect(slices.Compact(s.extension.taken())).To(Equal([]string{"reconcile"}))
	s.expectAwake()
	s.Expect(s.bench.Machines.Nodes()).NotTo(Equal(nodes))

	s.timed(t, "deletion", s.gardenlet.Delete)
	s.Expect(slices.Compact(s.extension.taken())).To(Equal([]string{"delete"}))
	s.Expect(s.index(bench.StepCleanWebhooks)).To(BeNumerically("<", s.index(bench.StepDestroyExtension)))
	s.Expect(s.bench.Shoot.Running()).To(BeFalse())
	s.Expect(s.bench.Machines.Nodes()).To(BeEmpty())
	s.Expect(s.gardenlet.Shoot()).To(BeNil())
	s.expectNothingOnSeed()
}
