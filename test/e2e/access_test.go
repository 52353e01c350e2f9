//go:build e2e

// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/access"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

func TestAccessToTheShoot(t *testing.T) {
	s := newStage(t, bench.Options{}, shortStabilization)
	w := s.installInHouse(admissionregistrationv1.OperationAll)

	s.story("gardener-resource-manager brings rights and token after the first call", func() {
		s.Eventually(s.hasRights).WithTimeout(30 * time.Second).Should(BeTrue())
		s.reconcile()
		s.Expect(s.uses(bench.AccessOwn, 0)).NotTo(BeEmpty())
		s.Expect(s.uses(bench.AccessGardeners, 0)).To(BeEmpty())
	})
	s.story("the ManagedResource was removed by hand: the next call brings the rights again, and waits for them", func() {
		s.Expect(s.bench.Seed.Client().Delete(s.ctx, s.managedResource())).To(Succeed())
		s.Eventually(s.hasRights).WithTimeout(30 * time.Second).Should(BeFalse())
		s.hibernate()
		s.expectOpenAsleep(w.pods.Name, w.nodes.Name)
		s.wakeUp()
		s.Expect(s.hasRights()).To(BeTrue())
		s.Expect(s.uses(bench.AccessGardeners, 0)).To(BeEmpty())
	})
	s.story("the Secret was removed by hand: the next call makes it again, and waits for the token", func() {
		s.Expect(s.bench.Seed.Client().Delete(s.ctx, s.ownSecret())).To(Succeed())
		s.hibernate()
		s.expectOpenAsleep(w.pods.Name, w.nodes.Name)
		s.wakeUp()
		s.Expect(s.uses(bench.AccessGardeners, 0)).To(BeEmpty())
	})
	s.story("the token expired in the sleep: the renewed one is awaited", func() {
		s.hibernate()
		s.Expect(s.gardenlet.ExpireTokens(s.ctx)).To(Succeed())
		s.wakeUp()
		s.Expect(s.uses(bench.AccessGardeners, 0)).To(BeEmpty())
	})
	s.story("its renewal comes late: Gardener's access serves the call, and nothing but the call", func() {
		s.hibernate()
		s.Expect(s.gardenlet.ExpireTokens(s.ctx)).To(Succeed())
		s.annotateSecret("in a while") // gardener-resource-manager makes no token of it
		s.wakeUp()
		s.Expect(s.uses(bench.AccessGardeners, 0)).NotTo(BeEmpty())
		s.annotateSecret("12h")
		s.Eventually(func() string { return s.policy(w.pods) + s.policy(w.nodes) }).WithTimeout(s.patience).Should(Equal("FailFail"))
	})
	s.story("the extension is disabled: its rights in the Shoot are gone", func() {
		extensions := s.gardenlet.Shoot().Spec.Extensions
		s.gardenlet.Edit(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Extensions = nil })
		s.reconcile()
		s.Eventually(s.extension).WithTimeout(s.patience).Should(BeNil())
		s.Eventually(s.hasRights).WithTimeout(30 * time.Second).Should(BeFalse())
		s.Expect(s.exists(s.bench.Seed.Client(), s.ownSecret())).To(BeFalse())
		s.gardenlet.Edit(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Extensions = extensions })
		s.reconcile()
		s.Eventually(s.hasRights).WithTimeout(30 * time.Second).Should(BeTrue())
	})
	s.Expect(s.bench.WrongUses()).To(Succeed())
}

func TestAPIServersWithoutStreamingLists(t *testing.T) {
	s := newStage(t, bench.Options{NoStreamingLists: true}, shortStabilization)
	w := s.installInHouse(admissionregistrationv1.OperationAll)
	s.story("a sleep", func() {
		s.hibernate()
		s.expectOpenAsleep(w.pods.Name, w.nodes.Name)
		s.wakeUp()
	})
	s.Expect(s.bench.WrongUses()).To(Succeed())
}

// uses are what the extension asked the Shoot with this access and was answered with this refusal, 0 for none.
func (s *stage) uses(with string, refused int32) (found []string) {
	s.t.Helper()
	uses, err := s.bench.Uses()
	s.Expect(err).NotTo(HaveOccurred())
	for _, u := range uses {
		if u.Cluster == "shoot" && u.Access == with && u.Refused == refused {
			found = append(found, u.String())
		}
	}
	return found
}

// hasRights says whether everything that grants the rights is in the Shoot.
func (s *stage) hasRights() bool {
	for _, object := range access.Objects() {
		if !s.exists(s.bench.Shoot.Client(), object) {
			return false
		}
	}
	return true
}

func (s *stage) exists(c client.Client, object client.Object) bool {
	err := c.Get(s.ctx, client.ObjectKeyFromObject(object), object)
	s.Expect(client.IgnoreNotFound(err)).To(Succeed())
	return !apierrors.IsNotFound(err)
}

func (s *stage) managedResource() *resourcesv1alpha1.ManagedResource {
	return &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: s.bench.Namespace, Name: access.ManagedResourceName}}
}

func (s *stage) ownSecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.bench.Namespace, Name: access.SecretName}}
}

// annotateSecret asks gardener-resource-manager for tokens of this validity.
func (s *stage) annotateSecret(validity string) {
	s.t.Helper()
	secret := s.ownSecret()
	s.Expect(s.bench.Seed.Client().Get(s.ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
	patch := client.MergeFrom(secret.DeepCopy())
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, resourcesv1alpha1.ServiceAccountTokenExpirationDuration, validity)
	s.Expect(s.bench.Seed.Client().Patch(s.ctx, secret, patch)).To(Succeed())
}

// rightsDeleted counts the deletions of what grants the rights in the Shoot.
func (s *stage) rightsDeleted(begin time.Time) int {
	s.t.Helper()
	events, err := s.bench.Shoot.Audit().Writes(bench.Filter{Verbs: []string{"delete"}, Group: rbacv1.GroupName, Name: access.RoleName, Since: begin})
	s.Expect(err).NotTo(HaveOccurred())
	return len(events)
}
