// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/gardenlet/controller/shoot/care"
)

// CareSeedCRDs are what gardenlet's health check of a Shoot wants to list on the seed, beside DefaultSeedCRDs.
var CareSeedCRDs = []string{
	"extensions.gardener.cloud_backupentries", "extensions.gardener.cloud_containerruntimes", "extensions.gardener.cloud_controlplanes", "extensions.gardener.cloud_infrastructures",
	"extensions.gardener.cloud_networks", "extensions.gardener.cloud_operatingsystemconfigs", "monitoring.coreos.com_prometheuses",
}

// staleExtension is after what time gardenlet takes an extension without heartbeat for dead, by default.
const staleExtension = 5 * time.Minute

// InstallExtension tells the garden that the extension under test is installed on the seed, as gardener-controller-manager does.
func (g *Garden) InstallExtension(ctx context.Context) error {
	installation := &gardencorev1beta1.ControllerInstallation{
		ObjectMeta: metav1.ObjectMeta{Name: ExtensionType}, // its namespace on the seed is extension-<name>
		Spec: gardencorev1beta1.ControllerInstallationSpec{
			RegistrationRef: corev1.ObjectReference{Name: ExtensionType}, SeedRef: &corev1.ObjectReference{Name: seedNames[0]},
		},
	}
	if err := g.Client().Create(ctx, installation); err != nil {
		return fmt.Errorf("failed to create ControllerInstallation: %w", err)
	}
	return nil
}

// Care runs gardenlet's own checks of a Shoot's health and constraints once, and writes what they come to into the Shoot's
// status, as its care controller does every minute. thresholds keep a failing condition Progressing for a while; gardenlet's
// chart sets one minute. It needs GardenletOptions.Garden and a seed with CareSeedCRDs.
func (g *Gardenlet) Care(ctx context.Context, thresholds map[gardencorev1beta1.ConditionType]time.Duration) error {
	if g.options.Garden == nil {
		return errors.New("failed to care: there is no real garden")
	}
	g.flows.Lock()
	err := g.connect(ctx)
	g.flows.Unlock()
	if err != nil {
		return err
	}
	run, err := g.newRun(ctx, gardencorev1beta1.LastOperationTypeReconcile)
	if err != nil {
		return err
	}
	shoot := run.Shoot.GetInfo()
	conditions, constraints := care.NewShootConditions(clock.RealClock{}, shoot), care.NewShootConstraints(clock.RealClock{}, shoot)
	config := &gardenletconfigv1alpha1.GardenletConfiguration{SeedConfig: &gardenletconfigv1alpha1.SeedConfig{}}
	config.SeedConfig.Name = seedNames[0]
	health := care.NewHealth(g.log, run.Shoot, run.Seed, g.seed, g.garden, run.shootClient(ctx), clock.RealClock{}, config, thresholds).
		Check(ctx, &metav1.Duration{Duration: staleExtension}, conditions)
	possible := care.NewConstraint(g.log, run.Shoot, g.seed.Client(), run.shootClient(ctx), clock.RealClock{}).Check(ctx, constraints)

	before := shoot.DeepCopy()
	after := shoot.DeepCopy()
	after.Status.Conditions = v1beta1helper.BuildConditions(shoot.Status.Conditions, health, conditions.ConditionTypes())
	after.Status.Constraints = v1beta1helper.BuildConditions(shoot.Status.Constraints, possible, constraints.ConstraintTypes())
	if err := g.garden.Status().Patch(ctx, after, client.StrategicMergeFrom(before)); err != nil {
		return fmt.Errorf("failed to patch status of Shoot: %w", err)
	}
	return nil
}

// shootClient connects to the Shoot if its API server runs.
func (r *gardenletRun) shootClient(ctx context.Context) care.ShootClientInit {
	return func() (kubernetes.Interface, bool, error) {
		running, err := r.IsAPIServerRunning(ctx)
		if err != nil || !running {
			return nil, false, err
		}
		err = r.InitializeShootClients(ctx)
		return r.ShootClientSet, r.ShootClientSet != nil, err
	}
}
