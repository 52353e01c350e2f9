// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"os"

	controllercmd "github.com/gardener/gardener/extensions/pkg/controller/cmd"
	webhookcmd "github.com/gardener/gardener/extensions/pkg/webhook/cmd"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	kubernetesclient "github.com/gardener/gardener/pkg/client/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/admission"
)

const (
	// Name of the command.
	Name = "gardener-extension-shoot-hibernation-guard-admission"
	// component is what Gardener's library makes names of: the webhook configuration is gardener-extension-<component>.
	component = "admission-shoot-hibernation-guard"
)

// options of the command.
type options struct {
	rest     *controllercmd.RESTOptions // of the runtime cluster
	manager  *controllercmd.ManagerOptions
	webhooks *webhookcmd.AddToManagerOptions
	all      controllercmd.OptionAggregator

	garden *rest.Config
}

func newOptions() *options {
	namespace := os.Getenv("LEADER_ELECTION_NAMESPACE")
	o := &options{
		rest: &controllercmd.RESTOptions{},
		manager: &controllercmd.ManagerOptions{
			LeaderElection: true, LeaderElectionID: controllercmd.LeaderElectionNameID(Name), LeaderElectionNamespace: namespace,
			WebhookServerPort: 10250, WebhookCertDir: "/tmp/webhook-certificates",
		},
		webhooks: webhookcmd.NewAddToManagerOptions(component, "", nil, nil,
			&webhookcmd.ServerOptions{Namespace: os.Getenv("WEBHOOK_CONFIG_NAMESPACE")},
			webhookcmd.NewSwitchOptions(webhookcmd.Switch(admission.Name, admission.New))),
	}
	o.all = controllercmd.NewOptionAggregator(o.rest, o.manager, o.webhooks)
	return o
}

// complete reads and checks everything before anything is started.
func (o *options) complete() error {
	if err := o.all.Complete(); err != nil {
		return err
	}
	path := os.Getenv(v1beta1constants.EnvGenericGardenKubeconfig)
	if path == "" {
		return fmt.Errorf("set %s to the path of a kubeconfig for the garden cluster; gardener-operator does so", v1beta1constants.EnvGenericGardenKubeconfig)
	}
	var err error
	if o.garden, err = kubernetesclient.RESTConfigFromKubeconfigFile(path, kubernetesclient.AuthTokenFile); err != nil {
		return fmt.Errorf("failed to read the kubeconfig in %s: %w", v1beta1constants.EnvGenericGardenKubeconfig, err)
	}
	return nil
}
