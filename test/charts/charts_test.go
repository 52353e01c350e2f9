// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"context"
	"maps"
	"os"
	"slices"
	"testing"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/gardener/gardener/pkg/apis/operator/v1alpha1"
	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	charttest "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/charts"
)

func TestExtensionOnASeed(t *testing.T) {
	s := startServer(t)
	s.namespace(charttest.Extension.Namespace, map[string]string{
		v1beta1constants.GardenRole: v1beta1constants.GardenRoleExtension,
		// As gardenlet takes it from the annotation security.gardener.cloud/pod-security-enforce in example/.
		"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted",
	})
	s.priorityClass("gardener-system-900")
	s.accepts(charttest.Extension, nil)

	t.Run("the objects are accepted whatever value is changed", func(t *testing.T) {
		for path, variant := range charttest.Extension.Variants(t) {
			t.Log(path)
			s.on(t).admits(charttest.Extension.Render(t, variant))
		}
	})
	t.Run("the objects are accepted where gardenlet injects a kubeconfig of the garden", func(t *testing.T) {
		objects := charttest.Extension.InjectsGardenKubeconfig().Render(t, nil)
		NewWithT(t).Expect(gardenerutils.InjectGenericGardenKubeconfig(charttest.One[*appsv1.Deployment](t, objects),
			"generic-garden-kubeconfig-0123", "garden-access-extension", gardenerutils.VolumeMountPathGenericGardenKubeconfig)).To(Succeed())
		s.on(t).admits(objects)
	})
	t.Run("a pod that is not restricted is refused", func(t *testing.T) {
		pod := podOf(charttest.One[*appsv1.Deployment](t, charttest.Extension.Render(t, nil)))
		pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = ptr.To(true)
		NewWithT(t).Expect(s.client.Create(t.Context(), pod, client.DryRunAll)).To(MatchError(ContainSubstring(`violates PodSecurity "restricted`)))
	})
	t.Run("the registration for gardener-operator is accepted", func(t *testing.T) {
		g := NewWithT(t)
		data, err := os.ReadFile("../../example/extension.yaml")
		g.Expect(err).NotTo(HaveOccurred())
		extension := &operatorv1alpha1.Extension{}
		g.Expect(yaml.UnmarshalStrict(data, extension)).To(Succeed())
		s.on(t).admits([]client.Object{extension})
	})
}

func TestAdmissionInTheGarden(t *testing.T) {
	s := startServer(t)
	s.namespace(charttest.AdmissionRuntime.Namespace, map[string]string{"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"})
	s.priorityClass("gardener-garden-system-400")
	s.accepts(charttest.AdmissionRuntime, nil)
	s.accepts(charttest.AdmissionApplication, nil)
	for path, variant := range charttest.AdmissionRuntime.Variants(t) {
		t.Log(path)
		s.on(t).admits(charttest.AdmissionRuntime.Render(t, variant))
	}
	// The operator's kubeconfig is injected where the values name none.
	objects := charttest.AdmissionRuntime.Render(t, nil)
	NewWithT(t).Expect(gardenerutils.InjectGenericGardenKubeconfig(charttest.One[*appsv1.Deployment](t, objects),
		"generic-token-kubeconfig-0123", "shoot-access-extension-admission", gardenerutils.VolumeMountPathGenericKubeconfig)).To(Succeed())
	s.on(t).admits(objects)
}

// accepts creates the objects of a chart, and then once more as a change of nothing.
func (s *server) accepts(chart charttest.Chart, values charttest.Values) {
	s.t.Helper()
	for _, object := range chart.Render(s.t, values) {
		s.Expect(s.client.Create(s.t.Context(), object, client.FieldValidation("Strict"))).To(Succeed(), "%T", object)
	}
	s.admits(chart.Render(s.t, values))
	s.noWarnings()
}

// admits sends the objects of a chart, and a pod of its Deployment, to all admission and validation without storing them.
func (s *server) admits(objects []client.Object) {
	s.t.Helper()
	for _, object := range objects {
		if deployment, ok := object.(*appsv1.Deployment); ok {
			s.Expect(s.client.Create(s.t.Context(), podOf(deployment), client.DryRunAll, client.FieldValidation("Strict"))).To(Succeed())
		}
		err := s.client.Create(s.t.Context(), object, client.DryRunAll, client.FieldValidation("Strict"))
		if apierrors.IsAlreadyExists(err) {
			existing := object.DeepCopyObject().(client.Object)
			s.Expect(s.client.Get(s.t.Context(), client.ObjectKeyFromObject(object), existing)).To(Succeed())
			object.SetResourceVersion(existing.GetResourceVersion())
			err = s.client.Update(s.t.Context(), object, client.DryRunAll, client.FieldValidation("Strict"))
		}
		s.Expect(err).NotTo(HaveOccurred(), "%T", object)
	}
	s.noWarnings()
}

// podOf is the pod that a Deployment's ReplicaSet would create.
func podOf(deployment *appsv1.Deployment) *corev1.Pod {
	template := deployment.Spec.Template.DeepCopy()
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: deployment.Name + "-", Namespace: deployment.Namespace, Labels: template.Labels, Annotations: template.Annotations,
		},
		Spec: template.Spec,
	}
}

func (s *server) namespace(name string, labels map[string]string) {
	s.Expect(s.client.Create(s.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})).To(Succeed())
}

// priorityClass creates one that gardenlet or gardener-operator has put on the cluster.
func (s *server) priorityClass(name string) {
	s.Expect(s.client.Create(s.t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: 1000})).To(Succeed())
}

// noWarnings expects that the API server has had nothing to say since this was asked last.
func (s *server) noWarnings() {
	s.t.Helper()
	s.warnings.mu.Lock()
	defer s.warnings.mu.Unlock()
	said := slices.Sorted(maps.Keys(s.warnings.said))
	clear(s.warnings.said)
	s.Expect(said).To(BeEmpty())
}

// on is the server for a sub-test.
func (s *server) on(t *testing.T) *server {
	return &server{WithT: NewWithT(t), t: t, client: s.client, warnings: s.warnings}
}

// HandleWarningHeaderWithContext notes what the API server warns of.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said[text] = true
}
