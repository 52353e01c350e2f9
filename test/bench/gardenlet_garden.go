// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
)

const (
	// ExtensionType is the type, and the name on the seed, of the extension under test.
	ExtensionType = "shoot-hibernation-guard"

	gardenProject   = "bench"
	kubernetesOfAll = "1.36.3" // of bin/, see hack/kubernetes/go.mod
)

var (
	shootKey = types.NamespacedName{Namespace: "garden-" + gardenProject, Name: "guard"}
	// The two names between which Migrate and Restore move the Shoot; there is one seed behind both.
	seedNames = []string{"seed", "other-seed"}
)

// newGarden makes the imaginary garden: a client on objects in memory.
func newGarden(b *Bench, o GardenletOptions) client.Client {
	return fake.NewClientBuilder().WithScheme(kubernetes.GardenScheme).
		WithStatusSubresource(&gardencorev1beta1.Shoot{}).
		WithObjects(newShoot(b, o), newRegistration(o)).Build()
}

func newShoot(b *Bench, o GardenletOptions) *gardencorev1beta1.Shoot {
	nodes := int32(o.Nodes) //nolint:gosec // a handful
	shoot := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: shootKey.Namespace, Name: shootKey.Name,
			UID: "3f1c2f8e-6f36-4c4a-9d0b-6f5a1f3b7a11", Generation: 1, CreationTimestamp: metav1.Now(),
			Finalizers: []string{gardencorev1beta1.GardenerName},
			Labels:     map[string]string{v1beta1constants.ShootStatus: "healthy"},
		},
		Spec: gardencorev1beta1.ShootSpec{
			CloudProfile:           &gardencorev1beta1.CloudProfileReference{Kind: v1beta1constants.CloudProfileReferenceKindCloudProfile, Name: "bench"},
			CredentialsBindingName: new("bench"),
			Hibernation:            &gardencorev1beta1.Hibernation{Enabled: new(false)},
			Kubernetes:             gardencorev1beta1.Kubernetes{Version: kubernetesOfAll},
			Networking: &gardencorev1beta1.Networking{
				Type: new("bench"), Pods: new(podNetwork), Services: new(serviceNetwork), Nodes: new(nodeNetwork),
			},
			Provider: gardencorev1beta1.Provider{Type: "bench", Workers: []gardencorev1beta1.Worker{
				{Name: "pool", Minimum: nodes, Maximum: nodes, Machine: gardencorev1beta1.Machine{Type: "process"}},
			}},
			Region:   "loopback",
			SeedName: &seedNames[0],
		},
		Status: gardencorev1beta1.ShootStatus{TechnicalID: b.Namespace},
	}
	if o.Extension {
		shoot.Spec.Extensions = []gardencorev1beta1.Extension{{Type: ExtensionType, ProviderConfig: o.ProviderConfig}}
	}
	return shoot
}

// newRegistration is what makes gardenlet know the extension's type.
func newRegistration(o GardenletOptions) *gardencorev1beta1.ControllerRegistration {
	if o.Registration != nil {
		return o.Registration.DeepCopy()
	}
	return &gardencorev1beta1.ControllerRegistration{
		ObjectMeta: metav1.ObjectMeta{Name: ExtensionType},
		Spec: gardencorev1beta1.ControllerRegistrationSpec{Resources: []gardencorev1beta1.ControllerResource{{
			Kind: extensionsv1alpha1.ExtensionResource, Type: ExtensionType, Primary: new(true),
			WorkerlessSupported: new(false),
			// The defaults of gardener-apiserver.
			Lifecycle: &gardencorev1beta1.ControllerResourceLifecycle{
				Reconcile: new(gardencorev1beta1.AfterKubeAPIServer),
				Delete:    new(gardencorev1beta1.BeforeKubeAPIServer),
				Migrate:   new(gardencorev1beta1.BeforeKubeAPIServer),
			},
		}}},
	}
}

func newSeed(name string) *gardencorev1beta1.Seed {
	return &gardencorev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: gardencorev1beta1.SeedSpec{
			Provider: gardencorev1beta1.SeedProvider{Type: "bench", Region: "loopback"},
			Networks: gardencorev1beta1.SeedNetworks{Pods: "10.1.0.0/16", Services: "10.2.0.0/16"},
		},
	}
}

func newCloudProfile() *gardencorev1beta1.CloudProfile {
	return &gardencorev1beta1.CloudProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "bench"},
		Spec: gardencorev1beta1.CloudProfileSpec{
			Type:       "bench",
			Kubernetes: gardencorev1beta1.KubernetesSettings{Versions: []gardencorev1beta1.ExpirableVersion{{Version: kubernetesOfAll}}},
			Regions:    []gardencorev1beta1.Region{{Name: "loopback"}},

			MachineTypes: machineTypes, MachineImages: machineImages,
		},
	}
}

// Shoot is the Shoot in the garden as it is now; nil once it is deleted.
func (g *Gardenlet) Shoot() *gardencorev1beta1.Shoot {
	shoot := &gardencorev1beta1.Shoot{}
	if err := g.garden.Get(context.Background(), shootKey, shoot); err != nil {
		utilruntime.Must(client.IgnoreNotFound(err))
		return nil
	}
	if shoot.Spec.SeedName == nil {
		shoot.Spec.SeedName = &seedNames[0] // see Garden.CreateShoot
	}
	return shoot
}

// Edit changes the Shoot in the garden, as its owner, an operator or another controller of Gardener would: a change of
// the spec, or the annotation gardener.cloud/operation, raises the generation. No flow runs before the next Reconcile,
// and a running one is not interrupted. A garden in memory accepts everything; with a real one see TryEdit.
func (g *Gardenlet) Edit(change func(*gardencorev1beta1.Shoot)) { utilruntime.Must(g.TryEdit(change)) }

// TryEdit is Edit; the error is that of gardener-apiserver.
func (g *Gardenlet) TryEdit(change func(*gardencorev1beta1.Shoot)) error {
	g.edits.Lock()
	defer g.edits.Unlock()
	old := g.Shoot()
	if old == nil {
		return nil
	}
	shoot := old.DeepCopy()
	change(shoot)
	status := shoot.Status.DeepCopy()
	operation := shoot.Annotations[v1beta1constants.GardenerOperation]
	if !equality.Semantic.DeepEqual(old.Spec, shoot.Spec) || operation != "" {
		shoot.Generation++
		delete(shoot.Annotations, v1beta1constants.GardenerOperation) // gardener-apiserver does so for reconcile and retry
	}
	if err := g.garden.Patch(context.Background(), shoot, client.MergeFrom(old)); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(old.Status, *status) {
		return nil
	}
	return g.updateStatus(context.Background(), func(shoot *gardencorev1beta1.Shoot) { shoot.Status = *status })
}

// updateStatus changes the Shoot's status, whatever else is changed at the same time.
func (g *Gardenlet) updateStatus(ctx context.Context, change func(*gardencorev1beta1.Shoot)) error {
	old := g.Shoot()
	if old == nil {
		return fmt.Errorf("failed to update status: the Shoot is gone")
	}
	shoot := old.DeepCopy()
	change(shoot)
	return g.garden.Status().Patch(ctx, shoot, client.MergeFrom(old))
}

func (g *Gardenlet) deleteShoot(ctx context.Context) error {
	shoot := g.Shoot()
	if shoot == nil || shoot.DeletionTimestamp != nil {
		return nil
	}
	g.Edit(func(shoot *gardencorev1beta1.Shoot) {
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, v1beta1constants.ConfirmationDeletion, "true")
		shoot.Generation++
	})
	if err := g.garden.Delete(ctx, shoot); err != nil {
		return fmt.Errorf("failed to delete Shoot: %w", err)
	}
	return nil
}

func (g *Gardenlet) putShootState(ctx context.Context, state *gardencorev1beta1.ShootState) error {
	state = state.DeepCopy()
	state.Namespace, state.Name, state.ResourceVersion = shootKey.Namespace, shootKey.Name, ""
	if err := g.garden.Delete(ctx, state.DeepCopy()); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("failed to replace ShootState: %w", err)
	}
	if err := g.garden.Create(ctx, state); err != nil {
		return fmt.Errorf("failed to create ShootState: %w", err)
	}
	return nil
}

// getShootState returns nil if there is none.
func (g *Gardenlet) getShootState(ctx context.Context) (*gardencorev1beta1.ShootState, error) {
	state := &gardencorev1beta1.ShootState{}
	if err := g.garden.Get(ctx, shootKey, state); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("failed to get ShootState: %w", err)
	}
	return state, nil
}

func setHibernation(shoot *gardencorev1beta1.Shoot, enabled bool) {
	shoot.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: &enabled}
}

func confirmForceDeletion(shoot *gardencorev1beta1.Shoot) {
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, v1beta1constants.AnnotationConfirmationForceDeletion, "true")
	shoot.Generation++
}

func chooseOtherSeed(shoot *gardencorev1beta1.Shoot) {
	other := seedNames[0]
	if shoot.Spec.SeedName != nil && *shoot.Spec.SeedName == other {
		other = seedNames[1]
	}
	shoot.Spec.SeedName = &other
}

func isFailed(shoot *gardencorev1beta1.Shoot) bool {
	return shoot.Status.LastOperation != nil && shoot.Status.LastOperation.State == gardencorev1beta1.LastOperationStateFailed
}
