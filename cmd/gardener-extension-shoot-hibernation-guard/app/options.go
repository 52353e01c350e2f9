// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"os"

	controllercmd "github.com/gardener/gardener/extensions/pkg/controller/cmd"
	heartbeatcmd "github.com/gardener/gardener/extensions/pkg/controller/heartbeat/cmd"
	"github.com/spf13/pflag"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/codec"
	configv1alpha1 "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/config/v1alpha1"
)

// Name of the extension; its Leases and metrics carry it.
const Name = "gardener-extension-shoot-hibernation-guard"

// options of the command.
type options struct {
	rest      *controllercmd.RESTOptions
	manager   *controllercmd.ManagerOptions
	lifecycle *controllercmd.ControllerOptions
	guard     *controllercmd.ControllerOptions
	heartbeat *heartbeatcmd.Options
	config    *configOptions
	all       controllercmd.OptionAggregator
}

func newOptions() *options {
	namespace := os.Getenv("LEADER_ELECTION_NAMESPACE")
	o := &options{
		rest: &controllercmd.RESTOptions{},
		manager: &controllercmd.ManagerOptions{
			LeaderElection: true, LeaderElectionID: controllercmd.LeaderElectionNameID(Name), LeaderElectionNamespace: namespace,
		},
		lifecycle: &controllercmd.ControllerOptions{MaxConcurrentReconciles: 10},
		guard:     &controllercmd.ControllerOptions{MaxConcurrentReconciles: 20},
		heartbeat: &heartbeatcmd.Options{ExtensionName: Name, Namespace: namespace},
		config:    &configOptions{},
	}
	o.all = controllercmd.NewOptionAggregator(o.rest, o.manager, o.config,
		controllercmd.PrefixOption("lifecycle-", o.lifecycle),
		controllercmd.PrefixOption("guard-", o.guard),
		controllercmd.PrefixOption("heartbeat-", o.heartbeat),
	)
	return o
}

// complete reads and checks everything before anything is started.
func (o *options) complete() error {
	if err := o.all.Complete(); err != nil {
		return err
	}
	return o.heartbeat.Validate()
}

// configOptions read the component configuration.
type configOptions struct {
	path   string
	config *configv1alpha1.ControllerConfiguration
}

// AddFlags adds --config.
func (o *configOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.path, "config", o.path, "Path to the component configuration (ControllerConfiguration). All defaults if it is not given.")
}

// Complete reads, defaults and validates the file.
func (o *configOptions) Complete() error {
	var data []byte
	if o.path != "" {
		var err error
		if data, err = os.ReadFile(o.path); err != nil {
			return fmt.Errorf("failed to read --config: %w", err)
		}
	}
	config, err := codec.DecodeControllerConfiguration(data)
	if err != nil {
		return fmt.Errorf("invalid --config %s: %w", o.path, err)
	}
	o.config = config
	return nil
}
