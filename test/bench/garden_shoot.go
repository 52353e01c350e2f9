// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
)

// createProject creates what a Shoot of the bench refers to.
func (g *Garden) createProject(ctx context.Context) error {
	namespace := shootKey.Namespace
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{
			v1beta1constants.GardenRole: v1beta1constants.GardenRoleProject, v1beta1constants.ProjectName: gardenProject,
		}}},
		&gardencorev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: gardenProject}, Spec: gardencorev1beta1.ProjectSpec{
			Namespace: &namespace,
			Owner:     &rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: AdminUser},
		}},
		newCloudProfile(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bench"}},
		&securityv1alpha1.CredentialsBinding{
			ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: "bench"},
			Provider:       securityv1alpha1.CredentialsBindingProvider{Type: "bench"},
			CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: "bench"},
		},
	} {
		if err := g.Client().Create(ctx, object); err != nil {
			return fmt.Errorf("failed to create %T: %w", object, err)
		}
	}
	return nil
}

// extensionUser is the extension's own ServiceAccount in the garden, see docs/extensions/garden-api-access.md of Gardener.
const extensionUser = "system:serviceaccount:seed-seed:extension-" + ExtensionType

// admitExtension grants the extension in the garden what it uses there of what the seed authorizer would let it do.
func (g *Garden) admitExtension(ctx context.Context) error {
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "extension"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{gardencorev1beta1.GroupName}, Resources: []string{"shoots"}, Verbs: []string{"get"}},
			{APIGroups: []string{gardencorev1beta1.GroupName}, Resources: []string{"shoots/status"}, Verbs: []string{"patch"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "extension"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "extension"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: extensionUser}},
		},
	} {
		if err := g.Client().Create(ctx, object); err != nil {
			return fmt.Errorf("failed to create %T: %w", object, err)
		}
	}
	content, err := g.Kubeconfig(extensionUser, "system:serviceaccounts", "system:serviceaccounts:seed-seed")
	if err != nil {
		return err
	}
	g.extensionKubeconfig = g.file("extension.kubeconfig")
	if err := os.WriteFile(g.extensionKubeconfig, content, 0o600); err != nil {
		return fmt.Errorf("failed to write kubeconfig: %w", err)
	}
	return nil
}

// CreateShoot creates in the garden the Shoot that a Gardenlet with these options keeps, and what makes gardenlet know the
// extension. The bench need only exist.
func (g *Garden) CreateShoot(ctx context.Context, b *Bench, o GardenletOptions) error {
	shoot, status := newGardenShoot(b, o)
	for _, object := range []client.Object{newRegistration(o), shoot} {
		if err := g.Client().Create(ctx, object); err != nil {
			return fmt.Errorf("failed to create %T: %w", object, err)
		}
	}
	before := shoot.DeepCopy()
	shoot.Status.TechnicalID = status.TechnicalID
	if err := g.Client().Status().Patch(ctx, shoot, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("failed to patch status of Shoot: %w", err)
	}
	return nil
}

// WouldAccept asks gardener-apiserver about the Shoot of CreateShoot without creating it.
func (g *Garden) WouldAccept(ctx context.Context, b *Bench, o GardenletOptions) error {
	shoot, _ := newGardenShoot(b, o)
	return g.Client().Create(ctx, shoot, client.DryRunAll)
}

// newGardenShoot is a Shoot as its owner writes it, and the status it gets.
func newGardenShoot(b *Bench, o GardenletOptions) (*gardencorev1beta1.Shoot, gardencorev1beta1.ShootStatus) {
	if o.Nodes == 0 {
		o.Nodes = 1
	}
	shoot := newShoot(b, o)
	status := shoot.Status
	shoot.ObjectMeta = metav1.ObjectMeta{Namespace: shoot.Namespace, Name: shoot.Name}
	shoot.Spec.SeedName = nil // there is no Seed in the garden that could be checked for room
	return shoot, status
}

// machineTypes and images are what gardener-apiserver wants to know of a CloudProfile.
var (
	machineTypes = []gardencorev1beta1.MachineType{{
		Name: "process", CPU: resource.MustParse("2"), GPU: resource.MustParse("0"), Memory: resource.MustParse("8Gi"), Usable: new(true), Architecture: new("amd64"),
	}}
	machineImages = []gardencorev1beta1.MachineImage{{Name: "bench", Versions: []gardencorev1beta1.MachineImageVersion{{
		ExpirableVersion: gardencorev1beta1.ExpirableVersion{Version: "1.0.0"}, Architectures: []string{"amd64"},
		CRI: []gardencorev1beta1.CRI{{Name: gardencorev1beta1.CRINameContainerD}},
	}}}}
)
