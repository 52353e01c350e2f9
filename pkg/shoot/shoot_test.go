// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package shoot_test

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/access"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/shoot"
)

func TestRequestAfterTheEndLeavesNoConnectionBehind(t *testing.T) {
	g := NewWithT(t)
	var open atomic.Int32
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"shoot": {
			Server: server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"shoot": {Token: "token"}},
		Contexts:       map[string]*clientcmdapi.Context{"shoot": {Cluster: "shoot", AuthInfo: "shoot"}},
		CurrentContext: "shoot",
	})
	g.Expect(err).NotTo(HaveOccurred())
	seed := fake.NewClientBuilder().WithObjects(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--a--b", Name: access.SecretName}, Data: map[string][]byte{"kubeconfig": kubeconfig},
	}).Build()
	connections := shoot.NewConnections(seed, func(string) {}, shoot.Options{QPS: 10, Burst: 10})
	conn, err := connections.Get(t.Context(), "shoot--a--b")
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(conn.Client.List(t.Context(), &corev1.NodeList{})).NotTo(Succeed(), "it answers 404")
	g.Expect(open.Load()).To(BeEquivalentTo(1))
	connections.Close("shoot--a--b")
	g.Eventually(open.Load).Should(BeZero())
	g.Expect(conn.Client.List(t.Context(), &corev1.NodeList{})).To(MatchError(ContainSubstring("the connection to the Shoot is closed")))
	g.Eventually(open.Load).Should(BeZero())
}
