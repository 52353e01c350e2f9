// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/controller/tokenrequestor"
	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"
	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/access"
)

// grant gives the product its rights, on the seed those of its chart, and Gardener its own. All Shoots are on one API server, so
// that no ManagedResource of one of them may bring, and take, the rights there: that is played with the real
// gardener-resource-manager elsewhere.
func grant(ctx context.Context) error {
	if err := servers.GrantController(ctx); err != nil {
		return err
	}
	admin := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "gardener.cloud:system:gardener"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: v1beta1constants.SecretNameGardenerInternal,
		}},
	}
	for _, object := range append(access.Objects(), admin) {
		if err := servers.Shoot.Client().Create(ctx, object); err != nil {
			return fmt.Errorf("failed to create %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// gardenersAccess writes Gardener's own kubeconfig as gardenlet does: a token that is in it stays. It names the gate.
func (s *theShoot) gardenersAccess() {
	s.t.Helper()
	kubeconfig := kubernetesutils.NewKubeconfig(s.name,
		clientcmdv1.Cluster{Server: s.gate.server.URL, CertificateAuthorityData: s.gate.certificate()}, clientcmdv1.AuthInfo{})
	secret := gardenerutils.NewShootAccessSecret(v1beta1constants.SecretNameGardenerInternal, s.name).
		WithNameOverride(v1beta1constants.SecretNameGardenerInternal).WithKubeconfig(kubeconfig)
	s.Expect(secret.Reconcile(s.ctx, s.seed())).To(Succeed())
}

// tokens lets Gardener's own code renew the tokens that are due, in the Secrets of these names.
func (s *theShoot) tokens(names ...string) {
	s.t.Helper()
	requestor := &tokenrequestor.Reconciler{
		SourceClient: s.seed(), TargetClient: s.shoot(), Clock: clock.RealClock{}, JitterFunc: wait.Jitter,
		APIAudiences: []string{v1beta1constants.GardenerAudience}, Class: new(resourcesv1alpha1.ResourceManagerClassShoot),
	}
	for _, name := range names {
		// All stories share the ServiceAccounts.
		s.Eventually(func() error {
			_, err := requestor.Reconcile(s.ctx, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: s.name, Name: name}})
			return err
		}).Should(Succeed())
	}
}

// ownAccess is the product's Secret.
func (s *theShoot) ownAccess() *corev1.Secret {
	secret := &corev1.Secret{}
	s.Expect(s.seed().Get(s.ctx, client.ObjectKey{Namespace: s.name, Name: access.SecretName}, secret)).To(Succeed())
	return secret
}

// renewalDue sets when the product's token is due to be renewed.
func (s *theShoot) renewalDue(at time.Time) {
	secret := s.ownAccess()
	patch := client.MergeFrom(secret.DeepCopy())
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, resourcesv1alpha1.ServiceAccountTokenRenewTimestamp, at.UTC().Format(time.RFC3339))
	s.Expect(s.seed().Patch(s.ctx, secret, patch)).To(Succeed())
}
