// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	operatorv1alpha1 "github.com/gardener/gardener/pkg/apis/operator/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// crds are those in Gardener's module that objects of charts and examples need.
var crds = []string{
	"example/seed-crds/10-crd-autoscaling.k8s.io_verticalpodautoscalers.yaml",
	"example/operator/10-crd-operator.gardener.cloud_extensions.yaml",
	"example/operator/10-crd-monitoring.coreos.com_servicemonitors.yaml",
}

// server is an API server as far as a seed's, the garden's or a runtime cluster's takes part in the installation of a chart.
type server struct {
	*WithT
	t        *testing.T
	client   client.Client
	warnings *warnings
}

type warnings struct {
	mu   sync.Mutex
	said map[string]bool
}

// startServer starts etcd and kube-apiserver on loopback until the test ends, with the admission plugins of a real cluster.
func startServer(t *testing.T) *server {
	t.Helper()
	g := NewWithT(t)
	gardener := gardenerModule(g)
	environment := &envtest.Environment{
		BinaryAssetsDirectory: filepath.Join("..", "..", "bin"), CRDInstallOptions: envtest.CRDInstallOptions{ErrorIfPathMissing: true},
	}
	for _, crd := range crds {
		environment.CRDInstallOptions.Paths = append(environment.CRDInstallOptions.Paths, filepath.Join(gardener, crd))
	}
	environment.ControlPlane.GetAPIServer().Configure().Disable("disable-admission-plugins") // envtest disables ServiceAccount
	t.Cleanup(func() { g.Expect(environment.Stop()).To(Succeed()) })                         // also after a start that failed half-way
	config, err := environment.Start()
	g.Expect(err).NotTo(HaveOccurred())

	config.QPS = -1
	s := &server{WithT: g, t: t, warnings: &warnings{said: map[string]bool{}}}
	config.WarningHandlerWithContext = s.warnings
	scheme := runtime.NewScheme()
	g.Expect(kubernetes.AddSeedSchemeToScheme(scheme)).To(Succeed())
	g.Expect(operatorv1alpha1.AddToScheme(scheme)).To(Succeed())
	s.client, err = client.New(config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	return s
}

// gardenerModule is the directory of Gardener's module.
func gardenerModule(g *WithT) string {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/gardener/gardener").Output()
	g.Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(string(out))
}
