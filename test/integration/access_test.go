// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/access"
)

const gardenersUser = "system:serviceaccount:kube-system:" + v1beta1constants.SecretNameGardenerInternal

func byGardeners(r request) bool { return r.user == gardenersUser }

func byOwn(r request) bool { return r.user == access.User }

func TestFirstCallOfAnAwakeShootMakesTheAccessAndWaitsForNothing(t *testing.T) {
	s := newShootWithoutExtension(t)
	s.losesAccess()
	s.flow(gardencorev1beta1.LastOperationTypeReconcile, false)
	s.Expect(s.call()).To(BeNumerically("<", tokenPatience))
	s.flowEnds()
	s.Expect(s.gate.seen(func(request) bool { return true })).To(BeEmpty(), "nothing was asked, by nobody's kubeconfig")
	s.Expect(s.onSeed()).To(ConsistOf(access.SecretName, access.RightsSecretName, access.ManagedResourceName))

	s.tokens(access.SecretName)
	s.flowBegins(true)
	s.call()
	s.Expect(s.standing()).To(Equal(open))
	s.Expect(s.gate.seen(byGardeners)).To(BeEmpty())
}

func TestHibernationWaitsForTheTokenThatIsRenewedInTime(t *testing.T) {
	s := newShoot(t)
	s.expires()
	s.flowBegins(true)
	s.asked()
	s.Consistently(func() any { return s.gate.seen(func(r request) bool { return byOwn(r) && isPatch(r) }) }).Should(BeEmpty(), "an overdue token is not written with")
	s.tokens(access.SecretName)
	s.Eventually(s.succeeded).Should(BeTrue())
	s.Expect(s.standing()).To(Equal(open))
	s.Expect(s.gate.seen(byGardeners)).To(BeEmpty())
}

func TestHibernationFallsBackToGardenersAccessForTheCallOnly(t *testing.T) {
	for name, happens := range map[string]func(*theShoot){
		"the token is expired":                    (*theShoot).expires,
		"the Secret was deleted":                  (*theShoot).losesAccess,
		"the Secret was spoilt":                   (*theShoot).spoilsAccess,
		"the token is not known":                  func(s *theShoot) { s.gate.fails(always, wrong["401"], byOwn) },
		"the rights are missing":                  func(s *theShoot) { s.gate.fails(always, wrong["403"], byOwn) },
		"the token is overdue and without rights": func(s *theShoot) { s.renewalDue(time.Now()); s.gate.fails(always, wrong["403"], byOwn) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShoot(t)
			happens(s)
			s.flowBegins(true)
			s.Expect(s.call()).To(And(BeNumerically(">", tokenPatience), BeNumerically("<", mayTake)))
			s.Expect(s.standing()).To(Equal(open))
			s.Expect(s.gate.seen(byGardeners)).NotTo(BeEmpty())
			s.gate.forget()
			s.nudge()
			s.Eventually(s.condition).Should(HavePrefix("Unknown ShootUnreachable"))
			s.Consistently(func() any { return s.gate.seen(byGardeners) }).WithTimeout(2*time.Second).Should(BeEmpty(), "the loop has its own access only")
			s.Eventually(s.gate.openConnections).Should(BeNumerically("<=", 1))

			s.gate.mend()
			s.tokens(access.SecretName)
			s.nudge()
			s.Eventually(s.condition).Should(HavePrefix("Progressing WebhooksOpening"))
			s.Expect(s.gate.seen(byGardeners)).To(BeEmpty())
		})
	}
}

func TestTokenThatIsOverdueButGoodIsAskedWithInTheEnd(t *testing.T) {
	s := newShoot(t)
	s.renewalDue(time.Now())
	s.flowBegins(true)
	s.Expect(s.call()).To(BeNumerically(">", tokenPatience))
	s.Expect(s.standing()).To(Equal(open))
	s.Expect(s.gate.seen(byGardeners)).To(BeEmpty())
}

func TestWithoutFallbackHibernationIsHeldBack(t *testing.T) {
	s := newShoot(t, withoutFallback)
	s.expires()
	s.flowBegins(true)
	s.Expect(s.callFails()).To(And(ContainSubstring("hibernation is held back"), ContainSubstring("no access to the Shoot")))
	s.Expect(s.standing()).To(Equal(own))
	s.Expect(s.gate.seen(byGardeners)).To(BeEmpty())
	s.tokens(access.SecretName)
	s.Eventually(s.succeeded).Should(BeTrue(), "the library tries again")
	s.Expect(s.standing()).To(Equal(open))
}

func TestWithoutFallbackWakeUpGoesOnWithWhatIsOpen(t *testing.T) {
	s := newShoot(t, withoutFallback)
	s.hibernates()
	s.expires()
	s.flowBegins(false)
	s.apiServerStarts()
	s.Expect(s.call()).To(BeNumerically("<", mayTake))
	s.Expect(s.condition()).To(HavePrefix("Unknown ShootUnreachable"))
	s.Expect(s.standing()).To(Equal(open))
	s.Expect(s.gate.seen(byGardeners)).To(BeEmpty())
	s.tokens(access.SecretName)
	s.nodesJoin()
	s.Eventually(s.changed).Should(BeEmpty())
}

func TestWakeUpAfterASleepThatOutlivedTheToken(t *testing.T) {
	s := newShoot(t)
	s.hibernates()
	s.expires()
	s.flowBegins(false)
	s.apiServerStarts()
	s.Expect(s.call()).To(BeNumerically("<", mayTake))
	s.Expect(s.gate.seen(byGardeners)).NotTo(BeEmpty())
	s.tokens(access.SecretName)
	s.gate.forget()
	s.nodesJoin()
	s.Eventually(s.changed).Should(BeEmpty())
	s.Expect(s.gate.seen(byGardeners)).To(BeEmpty(), "the loop restores by its own access")
}

func TestSecretsOfTheAccessAreMendedByTheNextCall(t *testing.T) {
	s := newShoot(t)
	s.Expect(s.seed().Delete(s.ctx, s.ownAccess())).To(Succeed())
	rights := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: access.RightsSecretName}}
	s.Expect(s.seed().Get(s.ctx, client.ObjectKeyFromObject(rights), rights)).To(Succeed())
	data := rights.Data
	rights.Data = nil
	s.Expect(s.seed().Update(s.ctx, rights)).To(Succeed())
	resource := s.managedResource()
	resource.Spec.KeepObjects = new(true)
	s.Expect(s.seed().Update(s.ctx, resource)).To(Succeed())

	s.flowBegins(false)
	s.Expect(s.call()).To(BeNumerically("<", tokenPatience))
	s.tokens(access.SecretName)
	s.Expect(s.seed().Get(s.ctx, client.ObjectKeyFromObject(rights), rights)).To(Succeed())
	s.Expect(rights.Data).To(Equal(data))
	s.Expect(s.managedResource().Spec.KeepObjects).To(HaveValue(BeFalse()))
}

func TestNothingOfTheAccessIsLeftOnTheSeed(t *testing.T) {
	for name, end := range map[string]func(*theShoot){
		"disabled while awake": func(s *theShoot) { s.flowBegins(false); s.disabled() },
		"Shoot deleted": func(s *theShoot) {
			s.sync(func(shoot *gardencorev1beta1.Shoot) { shoot.DeletionTimestamp = &s.lookup().CreationTimestamp })
			s.Expect(s.gardenlet(true).DestroyBeforeKubeAPIServer(s.ctx)).To(Succeed())
		},
		"migrated": func(s *theShoot) {
			s.flow(gardencorev1beta1.LastOperationTypeMigrate, false)
			s.Expect(s.gardenlet(true).MigrateBeforeKubeAPIServer(s.ctx)).To(Succeed())
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShoot(t)
			s.Expect(s.onSeed()).To(HaveLen(3))
			end(s)
			s.Eventually(s.onSeed).Should(BeEmpty())
		})
	}
}

// expires lets the product's token expire, as a long sleep does.
func (s *theShoot) expires() {
	s.t.Helper()
	s.Expect(servers.ExpireToken(s.ctx, client.ObjectKeyFromObject(s.ownAccess()))).To(Succeed())
}

// losesAccess deletes what the product needs to reach the Shoot, on the seed.
func (s *theShoot) losesAccess() {
	s.t.Helper()
	s.Expect(access.Remove(s.ctx, s.seed(), s.name)).To(Succeed())
}

// spoilsAccess empties the product's kubeconfig.
func (s *theShoot) spoilsAccess() {
	secret := s.ownAccess()
	secret.Data = nil
	delete(secret.Annotations, resourcesv1alpha1.ServiceAccountTokenRenewTimestamp)
	s.Expect(s.seed().Update(s.ctx, secret)).To(Succeed())
}

func (s *theShoot) managedResource() *resourcesv1alpha1.ManagedResource {
	resource := &resourcesv1alpha1.ManagedResource{}
	s.Expect(s.seed().Get(s.ctx, client.ObjectKey{Namespace: s.name, Name: access.ManagedResourceName}, resource)).To(Succeed())
	return resource
}

// onSeed are the names of what the product made for its access.
func (s *theShoot) onSeed() (names []string) {
	secrets, resources := &corev1.SecretList{}, &resourcesv1alpha1.ManagedResourceList{}
	s.Expect(s.seed().List(s.ctx, secrets, client.InNamespace(s.name))).To(Succeed())
	s.Expect(s.seed().List(s.ctx, resources, client.InNamespace(s.name))).To(Succeed())
	for _, secret := range secrets.Items {
		if secret.Name != v1beta1constants.SecretNameGardenerInternal && secret.Name != v1beta1constants.SecretNameGardener {
			names = append(names, secret.Name)
		}
	}
	for _, resource := range resources.Items {
		names = append(names, resource.Name)
	}
	return names
}

func TestGardenersExternalAccessServesWhereThereIsNoInternalOne(t *testing.T) {
	s := newShoot(t)
	internal := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: v1beta1constants.SecretNameGardenerInternal}}
	s.Expect(s.seed().Get(s.ctx, client.ObjectKeyFromObject(internal), internal)).To(Succeed())
	s.Expect(s.seed().Delete(s.ctx, internal.DeepCopy())).To(Succeed())
	internal.ObjectMeta = metav1.ObjectMeta{Namespace: s.name, Name: v1beta1constants.SecretNameGardener}
	s.Expect(s.seed().Create(s.ctx, internal)).To(Succeed())
	s.losesAccess()
	s.flowBegins(true)
	s.call()
	s.Expect(s.standing()).To(Equal(open))
	s.Expect(s.onSeed()).To(ContainElement(access.SecretName))
}

func TestNamespaceOfAMissingServiceIsGotAndNotWatched(t *testing.T) {
	s := newShoot(t)
	s.validating("orphan", hookOf{name: "orphan", policy: "Fail", timeout: 10, backend: "nowhere"})
	s.hibernates()
	s.wakesUp()
	s.Eventually(s.watches).Should(HaveLen(7), "the loop watches")
	s.nodesJoin()
	s.Eventually(s.standing).Should(Equal(with(own, "orphan/orphan", "Ignore 3s")))
	s.Expect(s.condition()).To(ContainSubstring("orphan"))
	asked := s.gate.seen(func(r request) bool { return r.resource == "namespaces" })
	s.Expect(asked).NotTo(BeEmpty())
	for _, r := range asked {
		s.Expect(fmt.Sprint(r.verb, " ", r.code)).To(Equal("get 200"))
	}
}
