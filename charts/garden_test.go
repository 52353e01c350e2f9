// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"strings"
	"testing"

	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	charttest "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/charts"
)

// gardenLabels let a pod reach the garden's API server, wherever it is.
var gardenLabels = []string{
	"networking.gardener.cloud/to-public-networks", "networking.gardener.cloud/to-private-networks",
	"networking.resources.gardener.cloud/to-garden-virtual-garden-kube-apiserver-tcp-443",
}

func TestNetworkPoliciesAllowWhatIsNeeded(t *testing.T) {
	always := []string{
		"networking.gardener.cloud/to-dns", "networking.gardener.cloud/to-runtime-apiserver",
		"networking.resources.gardener.cloud/to-all-shoots-kube-apiserver-tcp-443",
	}
	for name, test := range map[string]struct {
		chart charttest.Chart
		want  []string
	}{
		"seed and Shoots":           {charttest.Extension, always},
		"seed, Shoots and a garden": {charttest.Extension.InjectsGardenKubeconfig(), append(always, gardenLabels...)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var got []string
			for label, value := range one[*appsv1.Deployment](t, test.chart.Render(t, nil)).Spec.Template.Labels {
				if strings.HasPrefix(label, "networking.") {
					g.Expect(value).To(Equal("allowed"))
					got = append(got, label)
				}
			}
			g.Expect(got).To(ConsistOf(test.want))
		})
	}
}

func TestGardenKubeconfigIsInjectedBesideWhatTheChartMounts(t *testing.T) {
	g := NewWithT(t)
	deployment := one[*appsv1.Deployment](t, charttest.Extension.InjectsGardenKubeconfig().Render(t, nil))
	before := deployment.DeepCopy().Spec.Template.Spec
	g.Expect(gardenerutils.InjectGenericGardenKubeconfig(deployment, "generic-garden-kubeconfig-0123", "garden-access-extension",
		gardenerutils.VolumeMountPathGenericGardenKubeconfig)).To(Succeed())

	after := deployment.Spec.Template.Spec
	g.Expect(after.Volumes).To(HaveLen(len(before.Volumes) + 1))
	paths := map[string]bool{}
	for _, mount := range after.Containers[0].VolumeMounts {
		paths[mount.MountPath] = true
	}
	g.Expect(paths).To(HaveLen(len(before.Containers[0].VolumeMounts)+1), "no two volumes at one path")
	g.Expect(after.Containers[0].Env).To(ContainElement(HaveField("Name", "GARDEN_KUBECONFIG")))
}

func TestTokenIsMountedByTheChart(t *testing.T) {
	g := NewWithT(t)
	objects := render(t, values{})
	g.Expect(one[*corev1.ServiceAccount](t, objects).AutomountServiceAccountToken).To(HaveValue(BeFalse()))
	pod := one[*appsv1.Deployment](t, objects).Spec.Template.Spec
	var token corev1.Volume
	for _, volume := range pod.Volumes {
		if volume.Projected != nil {
			token = volume
		}
	}
	// By this prefix gardener-resource-manager's webhook sees that it has nothing to add.
	g.Expect(token.Name).To(HavePrefix("kube-api-access-"))
	var files []string
	for _, source := range token.Projected.Sources {
		switch {
		case source.ServiceAccountToken != nil:
			g.Expect(source.ServiceAccountToken.ExpirationSeconds).To(HaveValue(Equal(int64(43200))))
			files = append(files, source.ServiceAccountToken.Path)
		case source.ConfigMap != nil:
			files = append(files, source.ConfigMap.Items[0].Path)
		case source.DownwardAPI != nil:
			files = append(files, source.DownwardAPI.Items[0].Path)
		}
	}
	g.Expect(files).To(ConsistOf("token", "ca.crt", "namespace"))
	g.Expect(pod.Containers[0].VolumeMounts).To(ContainElement(And(
		HaveField("Name", token.Name), HaveField("MountPath", "/var/run/secrets/kubernetes.io/serviceaccount"))))
}
