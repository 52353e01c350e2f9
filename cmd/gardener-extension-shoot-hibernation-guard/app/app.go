// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package app wires the controller.
package app

import (
	"context"
	"errors"
	"fmt"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	"github.com/gardener/gardener/extensions/pkg/controller/heartbeat"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	gardenerhealthz "github.com/gardener/gardener/pkg/healthz"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/component-base/version"
	"k8s.io/component-base/version/verflag"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	configv1alpha1 "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/config/v1alpha1"
	guardcontroller "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/controller/guard"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/controller/lifecycle"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/garden"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/guard"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/shoot"
)

// seedQPS and seedBurst bound the requests to the seed. Every pass reads and writes its Extension, and many Shoots hibernate
// at the same hour; client-go's default of 5 a second would hold them up. The values are those of Gardener's own extensions.
const seedQPS, seedBurst = 100, 130

// NewCommand returns the command. It runs until its context ends.
func NewCommand() *cobra.Command {
	o := newOptions()
	cmd := &cobra.Command{
		Use:           Name,
		Short:         "Sets a Shoot's admission webhooks fail-open while it hibernates, and gives each its own policy back.",
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
	controllers := Controllers{
		Config: o.config.config, Lifecycle: o.lifecycle.Completed().Options(), Guard: o.guard.Completed().Options(), Clock: clock.RealClock{},
	}
	if err := controllers.AddToManager(ctx, mgr); err != nil {
		return err
	}
	if err := addHeartbeat(mgr, o); err != nil {
		return err
	}
	if err := addChecks(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newManager(o *options) (manager.Manager, error) {
	options, err := ManagerOptions(o.manager.Completed().Options())
	if err != nil {
		return nil, err
	}
	config := o.rest.Completed().Config
	config.QPS, config.Burst = seedQPS, seedBurst
	mgr, err := manager.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("failed to make the manager: %w", err)
	}
	return mgr, nil
}

// ManagerOptions adds to the options of a manager what the controllers need of it: types, and what is cached of them.
func ManagerOptions(options manager.Options) (manager.Options, error) {
	options.Scheme = runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(options.Scheme), extensionscontroller.AddToScheme(options.Scheme)); err != nil {
		return options, fmt.Errorf("failed to make the scheme: %w", err)
	}
	options.Cache.ByObject = map[client.Object]cache.ByObject{
		&extensionsv1alpha1.Cluster{}: {Transform: slim},
		&appsv1.Deployment{}: {
			Field: fields.OneTermEqualSelector("metadata.name", v1beta1constants.DeploymentNameKubeAPIServer),
		},
	}
	options.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{
		&corev1.Secret{}, &resourcesv1alpha1.ManagedResource{}, &coordinationv1.Lease{}, // got by name, and some of them only
	}}
	return options, nil
}

// slim drops what is large in a Cluster and not needed here; Clusters are never written back.
func slim(object any) (any, error) {
	if cluster, ok := object.(*extensionsv1alpha1.Cluster); ok {
		cluster.ManagedFields = nil
		cluster.Spec.Seed = nil
		cluster.Spec.CloudProfile = runtime.RawExtension{}
	}
	return object, nil
}

// Controllers are the two controllers that share the passes over a Shoot.
type Controllers struct {
	// Config, with its defaults.
	Config *configv1alpha1.ControllerConfiguration
	// Lifecycle and Guard are the options of the two.
	Lifecycle, Guard controller.Options
	// Clock of the seed. Decisions and reports go by it; timers and the time-outs of requests do not.
	Clock clock.Clock
}

// AddToManager adds the controllers to a manager that was made with ManagerOptions.
func (c Controllers) AddToManager(ctx context.Context, mgr manager.Manager) error {
	loop := &guardcontroller.Loop{}
	agent := Name + "/" + version.Get().GitVersion
	constraints, err := garden.FromEnvironment(agent, c.Clock)
	if err != nil {
		return err
	}
	g := &guard.Guard{
		Seed: mgr.GetClient(), Fresh: mgr.GetAPIReader(),
		Garden: constraints,
		Events: mgr.GetEventRecorder(Name), Clock: c.Clock,
		SyncPeriod: c.Config.Care.SyncPeriod.Duration, Constraint: *c.Config.HibernationConstraint, Loop: loop.Continue,
		TokenPatience: c.Config.ShootClient.TokenPatience.Duration, AdminFallback: *c.Config.ShootClient.AdminFallback,
		Shoots: shoot.NewConnections(mgr.GetClient(), loop.Notify, shoot.Options{
			Timeout: c.Config.ShootClient.Timeout.Duration, QPS: *c.Config.ShootClient.QPS, Burst: int(*c.Config.ShootClient.Burst),
			UserAgent: agent, Log: mgr.GetLogger().WithName("shoot"),
		}),
	}
	if err := lifecycle.AddToManager(ctx, mgr, g, c.Lifecycle); err != nil {
		return fmt.Errorf("failed to add the lifecycle controller: %w", err)
	}
	if err := loop.AddToManager(mgr, g, c.Guard); err != nil {
		return fmt.Errorf("failed to add the guard controller: %w", err)
	}
	return nil
}

func addHeartbeat(mgr manager.Manager, o *options) error {
	beat := o.heartbeat.Completed()
	if err := heartbeat.Add(mgr, heartbeat.AddArgs{
		ExtensionName: beat.ExtensionName, Namespace: beat.Namespace, RenewIntervalSeconds: beat.RenewIntervalSeconds, Clock: clock.RealClock{},
	}); err != nil {
		return fmt.Errorf("failed to add the heartbeat controller: %w", err)
	}
	return nil
}

func addChecks(mgr manager.Manager) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("informer-sync", gardenerhealthz.NewCacheSyncHealthzWithDeadline(
		mgr.GetLogger(), clock.RealClock{}, mgr.GetCache(), gardenerhealthz.DefaultCacheSyncDeadline)); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("informer-sync", gardenerhealthz.NewCacheSyncHealthz(mgr.GetCache()))
}
