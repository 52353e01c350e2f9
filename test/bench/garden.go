// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
)

const gardenerAPIServer = "gardener-apiserver"

// gardenAPIs are all that gardener-apiserver serves; its own informers want them registered.
var gardenAPIs = []schema.GroupVersion{
	gardencorev1.SchemeGroupVersion, gardencorev1beta1.SchemeGroupVersion, seedmanagementv1alpha1.SchemeGroupVersion,
	operationsv1alpha1.SchemeGroupVersion, securityv1alpha1.SchemeGroupVersion,
}

// Garden is a garden cluster: etcd, kube-apiserver and the real gardener-apiserver, with a project and what a Shoot of it needs.
type Garden struct {
	*ControlPlane

	dir   string
	ports ports
	port  int // of gardener-apiserver
	apis  *child
	// extensionKubeconfig is the path of what gardenlet injects into extensions.
	extensionKubeconfig string
}

// NewGarden starts a Garden and returns when Shoots can be created in it. It leaves nothing behind if it fails.
func NewGarden(ctx context.Context, log logr.Logger) (*Garden, error) {
	if log.GetSink() == nil {
		log = logr.Discard()
	}
	g := &Garden{}
	begin := time.Now()
	if err := g.start(ctx, log); err != nil {
		return nil, errors.Join(fmt.Errorf("failed to start garden: %w", err), g.Close())
	}
	log.Info("Garden ready", "took", time.Since(begin).Round(time.Millisecond).String())
	return g, nil
}

func (g *Garden) start(ctx context.Context, log logr.Logger) error {
	var err error
	if g.dir, err = os.MkdirTemp("", "bench-garden-"); err != nil {
		return fmt.Errorf("failed to create directory: %w", err)
	}
	if g.ControlPlane, err = newControlPlane("garden", filepath.Join(g.dir, "garden"), log, kubernetes.GardenScheme, &g.ports, nil); err != nil {
		return err
	}
	g.aggregates = true
	if g.port, err = g.ports.take(); err != nil {
		return err
	}
	if err := g.startEtcd(ctx); err != nil {
		return err
	}
	if err := g.StartAPIServer(ctx); err != nil {
		return err
	}
	if err := g.startGardenerAPIServer(ctx); err != nil {
		return err
	}
	if err := g.registerAPIs(ctx); err != nil {
		return err
	}
	if err := g.createProject(ctx); err != nil {
		return err
	}
	return g.admitExtension(ctx)
}

// startGardenerAPIServer starts it with all of Gardener's admission plugins but two: ResourceReferenceManager, which wants
// quotas and more of a whole landscape, and ExtensionValidator, which wants every extension of a Shoot registered.
func (g *Garden) startGardenerAPIServer(ctx context.Context) error {
	path, err := binary(gardenerAPIServer)
	if err != nil {
		return err
	}
	kubeconfig, err := g.Kubeconfig(gardenerAPIServer, "system:masters")
	if err != nil {
		return err
	}
	serving, err := g.keys().ca.server(gardenerAPIServer + "." + metav1.NamespaceSystem + ".svc")
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"gardener-apiserver.kubeconfig": kubeconfig, "gardener-apiserver.crt": serving.cert, "gardener-apiserver.key": serving.key,
	} {
		if err := os.WriteFile(g.file(name), content, 0o600); err != nil {
			return fmt.Errorf("failed to write %s: %w", name, err)
		}
	}
	url := "https://" + loopback(g.port) + "/healthz"
	g.apis, err = startChild(command{name: gardenerAPIServer, path: path, logPath: g.file(gardenerAPIServer + ".log"), args: []string{
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", g.port),
		"--etcd-servers=http://" + loopback(g.etcdPort),
		"--tls-cert-file=" + g.file("gardener-apiserver.crt"), "--tls-private-key-file=" + g.file("gardener-apiserver.key"),
		"--cluster-identity=bench",
		"--authorization-always-allow-paths=/healthz",
		"--kubeconfig=" + g.file("gardener-apiserver.kubeconfig"),
		"--authentication-kubeconfig=" + g.file("gardener-apiserver.kubeconfig"),
		"--authorization-kubeconfig=" + g.file("gardener-apiserver.kubeconfig"),
		"--disable-admission-plugins=ResourceReferenceManager,ExtensionValidator",
	}})
	if err != nil {
		return err
	}
	return g.waitReady(ctx, g.apis, url)
}

// registerAPIs puts gardener-apiserver behind kube-apiserver and waits until Shoots can be listed there.
func (g *Garden) registerAPIs(ctx context.Context) error {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: gardenerAPIServer},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}
	if err := g.Client().Create(ctx, service); err != nil {
		return fmt.Errorf("failed to create service: %w", err)
	}
	port := int32(g.port) //nolint:gosec // a port
	for _, gv := range gardenAPIs {
		if err := g.Client().Create(ctx, &apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: gv.Version + "." + gv.Group},
			Spec: apiregistrationv1.APIServiceSpec{
				Service: &apiregistrationv1.ServiceReference{Namespace: service.Namespace, Name: service.Name, Port: &port},
				Group:   gv.Group, Version: gv.Version, GroupPriorityMinimum: 100, VersionPriority: 100, CABundle: g.CABundle(),
			},
		}); err != nil {
			return fmt.Errorf("failed to register %s: %w", gv, err)
		}
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		last = g.served(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("failed to see Gardener's APIs served: %w", errors.Join(err, last))
	}
	return nil
}

func (g *Garden) served(ctx context.Context) error {
	for _, gv := range gardenAPIs {
		service := &apiregistrationv1.APIService{}
		if err := g.Client().Get(ctx, client.ObjectKey{Name: gv.Version + "." + gv.Group}, service); err != nil {
			return err
		}
		if err := health.CheckAPIService(service); err != nil {
			return err
		}
	}
	// Each group is discovered by itself, and some time after it is available.
	return errors.Join(
		g.Client().List(ctx, &gardencorev1.ControllerDeploymentList{}), g.Client().List(ctx, &gardencorev1beta1.ShootList{}),
		g.Client().List(ctx, &seedmanagementv1alpha1.ManagedSeedList{}), g.Client().List(ctx, &operationsv1alpha1.BastionList{}),
		g.Client().List(ctx, &securityv1alpha1.CredentialsBindingList{}))
}

// Port reserves a loopback port until Close.
func (g *Garden) Port() (int, error) { return g.ports.take() }

// Close ends all processes and removes the files. It may be called more than once.
func (g *Garden) Close() error {
	if g == nil {
		return nil
	}
	if g.apis.running() {
		g.apis.Kill()
	}
	if g.ControlPlane != nil {
		g.close()
	}
	g.ports.close()
	if err := os.RemoveAll(g.dir); err != nil {
		return fmt.Errorf("failed to remove directory: %w", err)
	}
	return nil
}
