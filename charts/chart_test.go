// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	vpaautoscalingv1 "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/charts"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/access"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/codec"
	charttest "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/charts"
)

type values = charttest.Values

func TestDefaultValues(t *testing.T) {
	objects := render(t, values{})

	t.Run("all objects are rendered", func(t *testing.T) {
		NewWithT(t).Expect(charttest.Kinds(objects)).To(ConsistOf("ClusterRole", "ClusterRoleBinding", "ConfigMap", "Deployment",
			"PodDisruptionBudget", "Role", "RoleBinding", "Service", "ServiceAccount", "VerticalPodAutoscaler"))
	})
	t.Run("the pod passes the restricted pod security standard", func(t *testing.T) {
		g := NewWithT(t)
		evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
		g.Expect(err).NotTo(HaveOccurred())
		template := one[*appsv1.Deployment](t, objects).Spec.Template
		restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
		result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &template.ObjectMeta, &template.Spec))
		g.Expect(result.Allowed).To(BeTrue(), result.ForbiddenDetail())
	})
	t.Run("the configuration is the default one", func(t *testing.T) {
		g := NewWithT(t)
		defaults, err := codec.DecodeControllerConfiguration(nil)
		g.Expect(err).NotTo(HaveOccurred())
		got, err := codec.DecodeControllerConfiguration([]byte(one[*corev1.ConfigMap](t, objects).Data["config.yaml"]))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(Equal(defaults))
	})
	t.Run("the command reads the file that the ConfigMap is mounted as", func(t *testing.T) {
		g := NewWithT(t)
		pod, configMap := one[*appsv1.Deployment](t, objects).Spec.Template.Spec, one[*corev1.ConfigMap](t, objects)
		g.Expect(pod.Volumes[0].ConfigMap.Name).To(Equal(configMap.Name))
		g.Expect(pod.Containers[0].VolumeMounts[0].Name).To(Equal(pod.Volumes[0].Name))
		directory, key := path.Split(args(t, objects)["config"])
		g.Expect(path.Clean(directory)).To(Equal(pod.Containers[0].VolumeMounts[0].MountPath))
		g.Expect(configMap.Data).To(HaveKey(key))
	})
	t.Run("all selectors match the pod", func(t *testing.T) {
		g := NewWithT(t)
		deployment := one[*appsv1.Deployment](t, objects)
		selector := deployment.Spec.Selector.MatchLabels
		g.Expect(labels.SelectorFromSet(selector).Matches(labels.Set(deployment.Spec.Template.Labels))).To(BeTrue())
		g.Expect(one[*policyv1.PodDisruptionBudget](t, objects).Spec.Selector.MatchLabels).To(Equal(selector))
		g.Expect(one[*corev1.Service](t, objects).Spec.Selector).To(Equal(selector))
		g.Expect(one[*vpaautoscalingv1.VerticalPodAutoscaler](t, objects).Spec.TargetRef.Name).To(Equal(deployment.Name))
	})
}

func TestRights(t *testing.T) {
	g := NewWithT(t)
	objects := render(t, values{})
	role, clusterRole := one[*rbacv1.Role](t, objects), one[*rbacv1.ClusterRole](t, objects)
	var named []string
	for _, rule := range append(clusterRole.Rules, role.Rules...) {
		g.Expect(append(append(rule.APIGroups, rule.Resources...), rule.Verbs...)).NotTo(ContainElement("*"))
		for _, resource := range rule.Resources {
			if resource == "secrets" || resource == "managedresources" {
				g.Expect(rule.Verbs).NotTo(ContainElements("list", "watch"))
				g.Expect(rule.ResourceNames == nil).To(Equal(slices.Equal(rule.Verbs, []string{"create"})), "%v", rule)
				named = append(named, rule.ResourceNames...)
			}
		}
	}
	g.Expect(named).To(ConsistOf("gardener", "gardener-internal", access.SecretName, access.RightsSecretName, access.ManagedResourceName))
	g.Expect(one[*rbacv1.ClusterRoleBinding](t, objects).RoleRef.Name).To(Equal(clusterRole.Name))
	g.Expect(one[*rbacv1.RoleBinding](t, objects).RoleRef.Name).To(Equal(role.Name))
	for _, name := range []string{"leader-election-id", "leader-election-namespace"} {
		g.Expect(args(t, objects)).To(HaveKey(name))
	}
	g.Expect(role.Namespace).To(Equal(args(t, objects)["leader-election-namespace"]))
	g.Expect(role.Rules[1].ResourceNames).To(ContainElement(args(t, objects)["leader-election-id"]))
}

func TestValuesTakeEffect(t *testing.T) {
	t.Run("without the vertical pod autoscaler", func(t *testing.T) {
		NewWithT(t).Expect(charttest.Kinds(render(t, values{"vpa": values{"enabled": false}}))).NotTo(ContainElement("VerticalPodAutoscaler"))
	})
	t.Run("without scraping", func(t *testing.T) {
		g := NewWithT(t)
		objects := render(t, values{"metrics": values{"enableScraping": false}})
		g.Expect(charttest.Kinds(objects)).NotTo(ContainElement("Service"))
		g.Expect(one[*appsv1.Deployment](t, objects).Spec.Template.Annotations).NotTo(HaveKey("prometheus.io/scrape"))
	})
	t.Run("ports", func(t *testing.T) {
		g := NewWithT(t)
		objects := render(t, values{"metrics": values{"port": 1234}, "healthPort": 5678})
		g.Expect(args(t, objects)).To(And(HaveKeyWithValue("metrics-bind-address", ":1234"), HaveKeyWithValue("health-bind-address", ":5678")))
		g.Expect(one[*appsv1.Deployment](t, objects).Spec.Template.Annotations).To(HaveKeyWithValue("prometheus.io/port", "1234"))
		service := one[*corev1.Service](t, objects)
		g.Expect(service.Spec.Ports[0].Port).To(Equal(int32(1234)))
		g.Expect(service.Annotations).To(HaveKeyWithValue(
			"networking.resources.gardener.cloud/from-all-seed-scrape-targets-allowed-ports", `[{"port":1234,"protocol":"TCP"}]`))
	})
	t.Run("arguments", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(args(t, render(t, values{
			"controllers": values{"lifecycle": values{"concurrentSyncs": 3}, "guard": values{"concurrentSyncs": 4},
				"heartbeat": values{"renewIntervalSeconds": 5}},
			"logLevel": "debug", "logFormat": "text",
		}))).To(And(HaveKeyWithValue("lifecycle-max-concurrent-reconciles", "3"), HaveKeyWithValue("guard-max-concurrent-reconciles", "4"),
			HaveKeyWithValue("heartbeat-renew-interval-seconds", "5"),
			HaveKeyWithValue("log-level", "debug"), HaveKeyWithValue("log-format", "text")))
	})
	t.Run("a changed configuration restarts the pods", func(t *testing.T) {
		g := NewWithT(t)
		before, after := render(t, values{}), render(t, values{"config": values{"care": values{"syncPeriod": "7m"}}})
		config, err := codec.DecodeControllerConfiguration([]byte(one[*corev1.ConfigMap](t, after).Data["config.yaml"]))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(config.Care.SyncPeriod.Minutes()).To(Equal(7.0))
		checksum := func(objects []client.Object) string {
			return one[*appsv1.Deployment](t, objects).Spec.Template.Annotations["checksum/config"]
		}
		g.Expect(checksum(after)).NotTo(Or(BeEmpty(), Equal(checksum(before))))
	})
	for name, test := range map[string]struct{ ref, tag, want string }{
		"a tag":           {"", "v1.2.3", "registry.example.com/guard:v1.2.3"},
		"a digest":        {"", "sha256:0123", "registry.example.com/guard@sha256:0123"},
		"appVersion":      {"", "", "registry.example.com/guard:" + repositoryVersion(t)},
		"whole reference": {"registry.example.com/other:v1@sha256:0123", "v1.2.3", "registry.example.com/other:v1@sha256:0123"},
	} {
		t.Run("image by "+name, func(t *testing.T) {
			objects := render(t, values{"image": values{"ref": test.ref, "repository": "registry.example.com/guard", "tag": test.tag}})
			NewWithT(t).Expect(one[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers[0].Image).To(Equal(test.want))
		})
	}
}

func TestSchemaNamesWrongValues(t *testing.T) {
	for name, test := range map[string]struct {
		values values
		want   string
	}{
		"no repository":     {values{"image": values{"repository": ""}}, "/image/repository"},
		"misspelled key":    {values{"image": values{"repo": "x"}}, "repo"},
		"negative replicas": {values{"replicaCount": -1}, "/replicaCount"},
		"port out of range": {values{"metrics": values{"port": 65536}}, "/metrics/port"},
		"no workers":        {values{"controllers": values{"guard": values{"concurrentSyncs": 0}}}, "/controllers/guard/concurrentSyncs"},
		"unknown log level": {values{"logLevel": "trace"}, "/logLevel"},
		"no duration":       {values{"config": values{"care": values{"syncPeriod": "5 minutes"}}}, "/config/care/syncPeriod"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := charttest.Extension.TryRender(test.values)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

func TestVersions(t *testing.T) {
	g := NewWithT(t)
	for _, directory := range []string{charts.Extension, charts.AdmissionRuntime, charts.AdmissionApplication} {
		data, err := os.ReadFile(path.Join(directory, "Chart.yaml"))
		g.Expect(err).NotTo(HaveOccurred())
		var chart struct{ Version, AppVersion string }
		g.Expect(yaml.Unmarshal(data, &chart)).To(Succeed())
		g.Expect(chart.AppVersion).To(Equal(repositoryVersion(t)), directory)
		g.Expect("v"+chart.Version).To(Equal(repositoryVersion(t)), directory)
	}
}

func repositoryVersion(t *testing.T) string {
	data, err := os.ReadFile("../VERSION")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(string(data))
}

func render(t *testing.T, values values) []client.Object {
	t.Helper()
	return charttest.Extension.Render(t, values)
}

func one[T client.Object](t *testing.T, objects []client.Object) T {
	t.Helper()
	return charttest.One[T](t, objects)
}

func args(t *testing.T, objects []client.Object) map[string]string {
	t.Helper()
	return charttest.Args(t, objects)
}
