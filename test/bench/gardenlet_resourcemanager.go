// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"sigs.k8s.io/yaml"

	resourcemanagerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/resourcemanager/v1alpha1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
)

// ResourceManagerUser is the user of gardener-resource-manager on both clusters.
const ResourceManagerUser = "system:serviceaccount:kube-system:gardener-resource-manager"

// resourceManager is the Shoot's gardener-resource-manager: the real one, with those of its controllers that are at work for an
// extension: it issues tokens and applies ManagedResources. It works through the Shoot's API server, so webhooks can stop it.
type resourceManager struct {
	bench                        *Bench
	healthPort, port, metricPort int

	mu    sync.Mutex
	child *child
	turn  sync.Mutex // held during starts and stops
}

func newResourceManager(b *Bench) (*resourceManager, error) {
	m := &resourceManager{bench: b}
	for _, port := range []*int{&m.healthPort, &m.port, &m.metricPort} {
		var err error
		if *port, err = b.ports.take(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// start starts the process, if it does not run, and returns when it is ready.
func (m *resourceManager) start(ctx context.Context) error {
	m.turn.Lock()
	defer m.turn.Unlock()
	if m.running() {
		return nil
	}
	path, err := binary(v1beta1constants.DeploymentNameGardenerResourceManager)
	if err != nil {
		return err
	}
	config, err := m.writeFiles()
	if err != nil {
		return err
	}
	begin := time.Now()
	p, err := startChild(command{
		name: v1beta1constants.DeploymentNameGardenerResourceManager, path: path, args: []string{"--config=" + config},
		logPath: filepath.Join(m.bench.Dir, "shoot", v1beta1constants.DeploymentNameGardenerResourceManager+".log"),
	})
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.child = p
	m.mu.Unlock()
	if err := p.waitReady(ctx, m.healthPort, startTimeout); err != nil {
		p.Kill()
		return err
	}
	m.bench.Log.Info("Started", "component", p.name, "pid", p.Pid(), "took", time.Since(begin).Round(time.Millisecond).String())
	return nil
}

// stop ends the process, which need not run.
func (m *resourceManager) stop(context.Context) error {
	m.turn.Lock()
	defer m.turn.Unlock()
	if m.running() {
		m.child.Stop(stopGrace)
	}
	return nil
}

// kill ends the process at once.
func (m *resourceManager) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.child.running() {
		m.child.Kill()
	}
}

func (m *resourceManager) running() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.child.running()
}

// writeFiles writes the configuration and what it names, and returns the path of the configuration.
func (m *resourceManager) writeFiles() (string, error) {
	dir := filepath.Join(m.bench.Dir, "resource-manager")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("failed to create directory: %w", err)
	}
	source, err := m.bench.Seed.Kubeconfig(ResourceManagerUser, "system:masters")
	if err != nil {
		return "", err
	}
	target, err := m.bench.Shoot.Kubeconfig(ResourceManagerUser, "system:masters", "system:serviceaccounts", "system:serviceaccounts:kube-system")
	if err != nil {
		return "", err
	}
	config, err := yaml.Marshal(m.configuration(dir))
	if err != nil {
		return "", fmt.Errorf("failed to encode configuration: %w", err)
	}
	serving := m.bench.Shoot.keys().serving
	for name, content := range map[string][]byte{
		"source.kubeconfig": source, "target.kubeconfig": target, "config.yaml": config, "tls.crt": serving.cert, "tls.key": serving.key,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return "", fmt.Errorf("failed to write %s: %w", name, err)
		}
	}
	return filepath.Join(dir, "config.yaml"), nil
}

// configuration is as gardenlet's for a Shoot (pkg/component/gardener/resourcemanager in v1.149.3), without the webhooks and
// without the controllers that do nothing for an extension.
func (m *resourceManager) configuration(dir string) *resourcemanagerconfigv1alpha1.ResourceManagerConfiguration {
	server := func(port int) resourcemanagerconfigv1alpha1.Server {
		return resourcemanagerconfigv1alpha1.Server{BindAddress: "127.0.0.1", Port: port}
	}
	health, metrics := server(m.healthPort), server(m.metricPort)
	connection := func(name string, namespaces ...string) resourcemanagerconfigv1alpha1.ClientConnection {
		return resourcemanagerconfigv1alpha1.ClientConnection{
			ClientConnectionConfiguration: componentbaseconfigv1alpha1.ClientConnectionConfiguration{
				Kubeconfig: filepath.Join(dir, name+".kubeconfig"), QPS: 100, Burst: 130,
			},
			Namespaces: namespaces,
		}
	}
	target := connection("target")
	config := &resourcemanagerconfigv1alpha1.ResourceManagerConfiguration{
		TypeMeta: metav1.TypeMeta{
			APIVersion: resourcemanagerconfigv1alpha1.SchemeGroupVersion.String(), Kind: "ResourceManagerConfiguration",
		},
		SourceClientConnection: connection("source", m.bench.Namespace),
		TargetClientConnection: &target,
		LeaderElection:         componentbaseconfigv1alpha1.LeaderElectionConfiguration{LeaderElect: new(false)},
		Server: resourcemanagerconfigv1alpha1.ServerConfiguration{
			HealthProbes: &health, Metrics: &metrics,
			Webhooks: resourcemanagerconfigv1alpha1.HTTPSServer{Server: server(m.port)},
		},
	}
	config.Server.Webhooks.TLS.ServerCertDir = dir
	config.Controllers.TokenRequestor.Enabled = true
	config.Controllers.ManagedResource.ManagedByLabelValue = new(resourcesv1alpha1.GardenerManager)
	return config
}
