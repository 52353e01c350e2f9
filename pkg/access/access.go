// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package access is the extension's own way into a Shoot: a Secret that gardener-resource-manager keeps a token in, and the
// rights of that token, brought into the Shoot by a ManagedResource.
package access

import (
	"context"
	"fmt"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	kubernetesclient "github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/resourcemanager/controller/garbagecollector/references"
	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"
	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	"github.com/gardener/gardener/pkg/utils/managedresources/builder"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

// Names of the objects on the seed, in the technical namespace of each Shoot. They are fixed, so that the extension's rights on
// the seed can name them.
const (
	// SecretName holds the kubeconfig with the token.
	SecretName = gardenerutils.SecretNamePrefixShootAccess + ServiceAccount
	// ManagedResourceName brings the rights into the Shoot.
	ManagedResourceName = "extension-" + v1alpha1.ExtensionType
	// RightsSecretName is the Secret behind the ManagedResource.
	RightsSecretName = managedresources.SecretPrefix + ManagedResourceName
)

// origin tells our ManagedResource from Gardener's own, which it deletes earlier when a Shoot is deleted.
const origin = v1alpha1.ExtensionType

// Ensure makes the objects on the seed what they should be. Where the Shoot is reached, and by which CA it is known, is taken
// from Gardener's own kubeconfig each time; a token that is in the Secret stays. Without Gardener's kubeconfig, in a Shoot whose
// control plane has never run, it does nothing. c must read Secrets and ManagedResources uncached.
func Ensure(ctx context.Context, c client.Client, namespace string) error {
	cluster, err := gardenersCluster(ctx, c, namespace)
	if err != nil || cluster == nil {
		return err
	}
	// The token requestor may write at the same time.
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		kubeconfig := kubernetesutils.NewKubeconfig(namespace, *cluster, clientcmdv1.AuthInfo{})
		return gardenerutils.NewShootAccessSecret(ServiceAccount, namespace).WithKubeconfig(kubeconfig).Reconcile(ctx, c)
	})
	if err != nil {
		return fmt.Errorf("failed to write Secret %s/%s: %w", namespace, SecretName, err)
	}
	data, err := managedresources.NewRegistry(kubernetesclient.ShootScheme, kubernetesclient.ShootCodec, kubernetesclient.ShootSerializer).
		AddAllAndSerialize(Objects()...)
	if err != nil {
		return fmt.Errorf("failed to encode the rights in the Shoot: %w", err)
	}
	// The ManagedResource would set this label, and the next call would remove it: nothing collects what is referred to.
	labels := map[string]string{references.LabelKeyGarbageCollectable: references.LabelValueGarbageCollectable}
	err = builder.NewSecret(c).WithNamespacedName(namespace, RightsSecretName).WithKeyValues(data).AddLabels(labels).Reconcile(ctx)
	if err != nil {
		return fmt.Errorf("failed to write Secret %s/%s: %w", namespace, RightsSecretName, err)
	}
	err = managedresources.NewForShoot(c, namespace, ManagedResourceName, origin, false).WithSecretRef(RightsSecretName).Reconcile(ctx)
	if err != nil {
		return fmt.Errorf("failed to write ManagedResource %s/%s: %w", namespace, ManagedResourceName, err)
	}
	return nil
}

// Remove deletes the objects on the seed and waits for nothing. gardener-resource-manager takes the rights out of the Shoot
// afterwards, as soon as it runs. The ServiceAccount stays, without any rights.
func Remove(ctx context.Context, c client.Client, namespace string) error {
	if err := managedresources.DeleteForShoot(ctx, c, namespace, ManagedResourceName); err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: SecretName}}
	if err := client.IgnoreNotFound(c.Delete(ctx, secret)); err != nil {
		return fmt.Errorf("failed to delete Secret %s/%s: %w", namespace, SecretName, err)
	}
	return nil
}

// Leave is Remove for a Shoot that moves to another seed: the rights stay in the Shoot.
func Leave(ctx context.Context, c client.Client, namespace string) error {
	if err := managedresources.SetKeepObjects(ctx, c, namespace, ManagedResourceName, true); err != nil {
		return err
	}
	return Remove(ctx, c, namespace)
}

// GardenersSecret is the kubeconfig of Gardener's own that the extension library takes, too: the in-cluster one, else the
// external one.
func GardenersSecret(ctx context.Context, reader client.Reader, namespace string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1beta1constants.SecretNameGardenerInternal}, secret)
	if apierrors.IsNotFound(err) {
		err = reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1beta1constants.SecretNameGardener}, secret)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to get Gardener's kubeconfig of the Shoot: %w", err)
	}
	return secret, nil
}

// gardenersCluster is the cluster of Gardener's kubeconfig; nil if there is none.
func gardenersCluster(ctx context.Context, reader client.Reader, namespace string) (*clientcmdv1.Cluster, error) {
	secret, err := GardenersSecret(ctx, reader, namespace)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	config, err := clientcmd.Load(secret.Data[kubernetesclient.KubeConfig])
	if err != nil {
		return nil, fmt.Errorf("failed to decode the kubeconfig in Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil || config.Clusters[current.Cluster] == nil {
		return nil, fmt.Errorf("the kubeconfig in Secret %s/%s names no cluster", secret.Namespace, secret.Name)
	}
	cluster := config.Clusters[current.Cluster]
	return &clientcmdv1.Cluster{Server: cluster.Server, CertificateAuthorityData: cluster.CertificateAuthorityData}, nil
}
