// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"

	"github.com/gardener/gardener/pkg/chartrenderer"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/charts"
)

// ControllerGroups are the groups of ControllerUser, those of a ServiceAccount.
var ControllerGroups = []string{"system:serviceaccounts", "system:serviceaccounts:" + controllerNamespace}

// ControllerRights are the objects of the extension's chart that say what its controller may do on the seed, as gardenlet
// renders them, with the ServiceAccount and its namespace.
func ControllerRights() ([]client.Object, error) {
	archive, err := charts.Archive(charts.Extension)
	if err != nil {
		return nil, err
	}
	renderer := chartrenderer.NewWithServerVersion(&version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.3"})
	chart, err := renderer.RenderArchive(archive, controllerName, controllerNamespace, map[string]any{})
	if err != nil {
		return nil, fmt.Errorf("failed to render the chart: %w", err)
	}
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: controllerNamespace}}}
	for _, manifest := range chart.Manifests {
		object, _, err := kubernetes.SeedCodec.UniversalDeserializer().Decode([]byte(manifest.Content), nil, nil)
		if err != nil {
			return nil, fmt.Errorf("failed to decode %s: %w", manifest.Name, err)
		}
		switch o := object.(type) {
		case *corev1.ServiceAccount, *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding, *rbacv1.Role, *rbacv1.RoleBinding:
			objects = append(objects, o.(client.Object))
		}
	}
	return objects, nil
}

// GrantController gives ControllerUser what the chart gives the controller, and nothing else.
func (b *Bench) GrantController(ctx context.Context) error {
	objects, err := ControllerRights()
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := b.Seed.Client().Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("failed to create %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}
