// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"testing"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	kubernetesclient "github.com/gardener/gardener/pkg/client/kubernetes"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/access"
)

const namespace = "shoot--test--access"

func TestEnsure(t *testing.T) {
	t.Run("server and CA are those of Gardener's kubeconfig, also after a rotation, and the token stays", func(t *testing.T) {
		g, c := NewWithT(t), seed(gardeners("gardener-internal", "https://one", "old"))
		g.Expect(access.Ensure(t.Context(), c, namespace)).To(Succeed())
		server, ca, token := kubeconfigIn(t, c)
		g.Expect([]string{server, ca, token}).To(Equal([]string{"https://one", "old", ""}))

		issue(t, c, "issued")
		g.Expect(c.Update(t.Context(), gardeners("gardener-internal", "https://two", "new"))).To(Succeed())
		g.Expect(access.Ensure(t.Context(), c, namespace)).To(Succeed())
		server, ca, token = kubeconfigIn(t, c)
		g.Expect([]string{server, ca, token}).To(Equal([]string{"https://two", "new", "issued"}))
	})
	t.Run("the external kubeconfig serves where there is no internal one", func(t *testing.T) {
		g, c := NewWithT(t), seed(gardeners("gardener", "https://external", "ca"))
		g.Expect(access.Ensure(t.Context(), c, namespace)).To(Succeed())
		server, _, _ := kubeconfigIn(t, c)
		g.Expect(server).To(Equal("https://external"))
	})
	t.Run("nothing is made as long as there is none", func(t *testing.T) {
		g, c := NewWithT(t), seed()
		g.Expect(access.Ensure(t.Context(), c, namespace)).To(Succeed())
		g.Expect(objects(t, c)).To(BeEmpty())
	})
	t.Run("a second time changes nothing", func(t *testing.T) {
		g, c := NewWithT(t), seed(gardeners("gardener-internal", "https://one", "ca"))
		g.Expect(access.Ensure(t.Context(), c, namespace)).To(Succeed())
		before := rights(t, c)
		g.Expect(access.Ensure(t.Context(), c, namespace)).To(Succeed())
		g.Expect(rights(t, c)).To(Equal(before))
	})
	t.Run("the ManagedResource is for the Shoot's resource manager, and not of Gardener's own", func(t *testing.T) {
		g, c := NewWithT(t), seed(gardeners("gardener-internal", "https://one", "ca"))
		g.Expect(access.Ensure(t.Context(), c, namespace)).To(Succeed())
		resource := &resourcesv1alpha1.ManagedResource{}
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: access.ManagedResourceName}, resource)).To(Succeed())
		g.Expect(resource.Spec.Class).To(BeNil())
		g.Expect(resource.Spec.KeepObjects).To(HaveValue(BeFalse()))
		g.Expect(resource.Spec.SecretRefs).To(ConsistOf(corev1.LocalObjectReference{Name: access.RightsSecretName}))
		g.Expect(resource.Labels["origin"]).NotTo(Or(BeEmpty(), Equal("gardener")))
	})
}

func TestRemove(t *testing.T) {
	for name, end := range map[string]func(*testing.T, client.Client) error{
		"removed": func(t *testing.T, c client.Client) error { return access.Remove(t.Context(), c, namespace) },
		"left":    func(t *testing.T, c client.Client) error { return access.Leave(t.Context(), c, namespace) },
	} {
		t.Run(name+": nothing is left on the seed, and it may be repeated", func(t *testing.T) {
			g, c := NewWithT(t), seed(gardeners("gardener-internal", "https://one", "ca"))
			g.Expect(access.Ensure(t.Context(), c, namespace)).To(Succeed())
			g.Expect(objects(t, c)).To(HaveLen(3))
			g.Expect(end(t, c)).To(Succeed())
			g.Expect(objects(t, c)).To(BeEmpty())
			g.Expect(end(t, c)).To(Succeed())
		})
	}
}

func seed(objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithScheme(kubernetesclient.SeedScheme).WithObjects(objects...).Build()
}

func gardeners(name, server, ca string) *corev1.Secret {
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"a": {Server: server, CertificateAuthorityData: []byte(ca)}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"a": {Token: "gardeners"}},
		Contexts:       map[string]*clientcmdapi.Context{"a": {Cluster: "a", AuthInfo: "a"}},
		CurrentContext: "a",
	})
	if err != nil {
		panic(err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{kubernetesclient.KubeConfig: content},
	}
}

func own(t *testing.T, c client.Client) (*corev1.Secret, *clientcmdapi.Config) {
	g, secret := NewWithT(t), &corev1.Secret{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: access.SecretName}, secret)).To(Succeed())
	config, err := clientcmd.Load(secret.Data[kubernetesclient.KubeConfig])
	g.Expect(err).NotTo(HaveOccurred())
	return secret, config
}

func kubeconfigIn(t *testing.T, c client.Client) (server, ca, token string) {
	_, config := own(t, c)
	current := config.Contexts[config.CurrentContext]
	cluster := config.Clusters[current.Cluster]
	return cluster.Server, string(cluster.CertificateAuthorityData), config.AuthInfos[current.AuthInfo].Token
}

// issue does what the token requestor does.
func issue(t *testing.T, c client.Client, token string) {
	g := NewWithT(t)
	secret, config := own(t, c)
	config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo].Token = token
	var err error
	secret.Data[kubernetesclient.KubeConfig], err = clientcmd.Write(*config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Update(t.Context(), secret)).To(Succeed())
}

// objects are the names of what is ours on the seed.
func objects(t *testing.T, c client.Client) (names []string) {
	g, secrets, resources := NewWithT(t), &corev1.SecretList{}, &resourcesv1alpha1.ManagedResourceList{}
	g.Expect(c.List(t.Context(), secrets)).To(Succeed())
	g.Expect(c.List(t.Context(), resources)).To(Succeed())
	for _, secret := range secrets.Items {
		if secret.Name != "gardener" && secret.Name != "gardener-internal" {
			names = append(names, secret.Name)
		}
	}
	for _, resource := range resources.Items {
		names = append(names, resource.Name)
	}
	return names
}

// rights are the versions of the ManagedResource and of the Secret behind it.
func rights(t *testing.T, c client.Client) []string {
	g, secret, resource := NewWithT(t), &corev1.Secret{}, &resourcesv1alpha1.ManagedResource{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: access.RightsSecretName}, secret)).To(Succeed())
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: access.ManagedResourceName}, resource)).To(Succeed())
	return []string{secret.ResourceVersion, resource.ResourceVersion}
}
