// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package app wires the admission webhook.
package app

import (
	"context"
	"errors"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/component-base/version"
	"k8s.io/component-base/version/verflag"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// NewCommand returns the command. It runs until its context ends.
func NewCommand() *cobra.Command {
	o := newOptions()
	cmd := &cobra.Command{
		Use:           Name,
		Short:         "Checks the providerConfig of the extension while Shoots are created and edited in the garden.",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			if err := o.complete(); err != nil {
				return err
			}
			cmd.SilenceUsage = true
			return run(cmd.Context(), o)
		},
	}
	verflag.AddFlags(cmd.Flags())
	o.all.AddFlags(cmd.Flags())
	return cmd
}

func run(ctx context.Context, o *options) error {
	mgr, err := newManager(o)
	if err != nil {
		return err
	}
	mgr.GetLogger().Info("Starting", "version", version.Get().GitVersion)
	runtimeCluster, err := newRuntimeCluster(o)
	if err != nil {
		return err
	}
	if _, err := o.webhooks.Completed().AddToManager(ctx, mgr, runtimeCluster); err != nil {
		return fmt.Errorf("failed to add the webhook: %w", err)
	}
	if err := addChecks(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newManager is for the garden cluster, where the webhook is registered; it elects its leader in the runtime cluster.
func newManager(o *options) (manager.Manager, error) {
	options := o.manager.Completed().Options()
	options.LeaderElectionConfig = o.rest.Completed().Config
	options.Scheme = runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(options.Scheme), gardencorev1beta1.AddToScheme(options.Scheme)); err != nil {
		return nil, fmt.Errorf("failed to make the scheme: %w", err)
	}
	// Nothing in the garden is watched: the webhook configuration is got by name, and so is the namespace that owns it.
	options.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{
		&admissionregistrationv1.ValidatingWebhookConfiguration{}, &corev1.Namespace{},
	}}
	mgr, err := manager.New(o.garden, options)
	if err != nil {
		return nil, fmt.Errorf("failed to make the manager: %w", err)
	}
	return mgr, nil
}

// newRuntimeCluster is where the process runs and keeps the webhook's certificates. Secrets are asked for, not watched: a cache
// would hold all those of the namespace, which the garden's other components share.
func newRuntimeCluster(o *options) (cluster.Cluster, error) {
	runtimeCluster, err := cluster.New(o.rest.Completed().Config, func(opts *cluster.Options) {
		opts.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}
	})
	if err != nil {
		return nil, fmt.Errorf("failed to connect to the runtime cluster: %w", err)
	}
	return runtimeCluster, nil
}

// addChecks adds no check of informers: there are none.
func addChecks(mgr manager.Manager) error {
	return errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("webhook-server", mgr.GetWebhookServer().StartedChecker()),
	)
}
