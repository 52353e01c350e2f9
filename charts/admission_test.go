// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"testing"

	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/cmd/gardener-extension-shoot-hibernation-guard-admission/app"
	charttest "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/charts"
)

func TestAdmissionRuntime(t *testing.T) {
	g := NewWithT(t)
	objects := charttest.AdmissionRuntime.Render(t, nil)
	g.Expect(charttest.Kinds(objects)).To(ConsistOf("Deployment", "PodDisruptionBudget", "Role", "RoleBinding", "Service", "ServiceAccount", "ServiceMonitor", "VerticalPodAutoscaler"))
	deployment := one[*appsv1.Deployment](t, objects)
	g.Expect(*deployment.Spec.Replicas).To(BeEquivalentTo(2))
	g.Expect(deployment.Spec.Template.Spec.PriorityClassName).To(Equal("gardener-garden-system-400"))
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	g.Expect(err).NotTo(HaveOccurred())
	for _, result := range evaluator.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &deployment.Spec.Template.ObjectMeta, &deployment.Spec.Template.Spec) {
		g.Expect(result.Allowed).To(BeTrue(), result.ForbiddenDetail)
	}

	flags := app.NewCommand().Flags()
	g.Expect(flags.Parse(deployment.Spec.Template.Spec.Containers[0].Args)).To(Succeed())
	g.Expect(flags.Args()).To(BeEmpty())
	for name, want := range charttest.Args(t, objects) {
		g.Expect(flags.Lookup(name).Value.String()).To(Equal(want), name)
	}
	eachValueTakesEffect(t, charttest.AdmissionRuntime)
	unknownValuesAreRefused(t, charttest.AdmissionRuntime, "resources", "resources.requests", "vpa.minAllowed")
}

func TestAdmissionApplication(t *testing.T) {
	g := NewWithT(t)
	objects := charttest.AdmissionApplication.Render(t, nil)
	g.Expect(charttest.Kinds(objects)).To(ConsistOf("ClusterRole", "ClusterRoleBinding"))
	for _, rule := range one[*rbacv1.ClusterRole](t, objects).Rules {
		g.Expect(rule.APIGroups).NotTo(ContainElement("*"))
		g.Expect(rule.Resources).NotTo(ContainElement("*"))
		g.Expect(rule.Verbs).NotTo(ContainElement("*"))
	}
	eachValueTakesEffect(t, charttest.AdmissionApplication)
	_, err := charttest.AdmissionApplication.TryRender(charttest.Values{"gardener": charttest.Values{"virtualCluster": charttest.Values{"serviceAccount": charttest.Values{"name": ""}}}})
	g.Expect(err).To(MatchError(ContainSubstring("/gardener/virtualCluster/serviceAccount/name")))
}

func TestAdmissionWithoutGardenerOperator(t *testing.T) {
	g := NewWithT(t)
	deployment := one[*appsv1.Deployment](t, charttest.AdmissionRuntime.Render(t, values{"gardenKubeconfig": values{"secretName": "garden"}}))
	before := deployment.DeepCopy()
	container := deployment.Spec.Template.Spec.Containers[0]
	g.Expect(container.Env).To(ConsistOf(And(HaveField("Name", "GARDEN_KUBECONFIG"), HaveField("Value", gardenerutils.PathGenericKubeconfig))))
	g.Expect(container.VolumeMounts).To(ContainElement(And(
		HaveField("Name", "garden-kubeconfig"), HaveField("MountPath", gardenerutils.VolumeMountPathGenericKubeconfig))))
	g.Expect(gardenerutils.InjectGenericGardenKubeconfig(deployment, "generic-token-kubeconfig-0123", "shoot-access-extension-admission",
		gardenerutils.VolumeMountPathGenericKubeconfig)).To(Succeed())
	g.Expect(deployment).To(Equal(before), "gardener-operator leaves it as it is")
}
