// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package charts renders the project's Helm charts for tests, as Gardener does it. What a real API server says to them is
// tested here; what they say is tested next to them.
package charts

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/gardener/gardener/pkg/chartrenderer"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/utils"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/charts"
)

// Values of a chart.
type Values = map[string]any

// Chart is a chart as it is installed.
type Chart struct {
	// Directory in charts.Files.
	Directory string
	// Release is its name, Namespace where it goes.
	Release, Namespace string
	// Given are the values that Gardener puts over those of the operator.
	Given Values
	// Other are values other than the default, by their path ("image.tag"), where just any value would not do.
	Other Values
}

// Extension is the chart on a seed.
var Extension = Chart{
	Directory: charts.Extension,
	Release:   "extension-shoot-hibernation-guard",
	Namespace: "extension-shoot-hibernation-guard-abcde",
	// Some of what gardenlet gives: pkg/gardenlet/controller/controllerinstallation/controllerinstallation/reconciler.go of
	// Gardener.
	Given: Values{
		"gardener": Values{
			"version": "v1.149.3", "garden": Values{"clusterIdentity": "garden"}, "seed": Values{"name": "seed"},
		},
		"usablePorts": []int{8080},
	},
	Other: Values{
		"image.pullPolicy": "Always", "logLevel": "debug", "logFormat": "text", "vpa.updateMode": "Recreate", "metrics.port": 9090,
		"resources.requests.cpu": "70m", "resources.requests.memory": "200Mi", "vpa.minAllowed.memory": "100Mi",
		"config.hibernationConstraint": "Leave", "config.care.syncPeriod": "7m",
		"config.shootClient.timeout": "4s", "config.shootClient.tokenPatience": "3s",
	},
}

// AdmissionRuntime and AdmissionApplication are the two charts of the admission component, as gardener-operator installs them:
// pkg/operator/controller/extension/extension/admission/admission.go of Gardener.
var (
	AdmissionRuntime = Chart{
		Directory: charts.AdmissionRuntime, Release: "extension-shoot-hibernation-guard", Namespace: "garden",
		Given: Values{"gardener": Values{
			"runtimeCluster": Values{"priorityClassName": "gardener-garden-system-400"},
			"virtualCluster": Values{"enabled": true, "namespace": "extension-extension-shoot-hibernation-guard"},
		}},
		Other: Values{
			"image.pullPolicy": "Always", "logLevel": "debug", "logFormat": "text", "vpa.updateMode": "Recreate", "metrics.port": 9090,
			"resources.requests.cpu": "70m", "resources.requests.memory": "200Mi", "vpa.minAllowed.memory": "100Mi",
		},
	}
	AdmissionApplication = Chart{
		Directory: charts.AdmissionApplication, Release: "extension-shoot-hibernation-guard", Namespace: "extension-extension-shoot-hibernation-guard",
	}
)

// InjectsGardenKubeconfig is the chart as gardenlet installs it when the ControllerDeployment has injectGardenKubeconfig.
func (c Chart) InjectsGardenKubeconfig() Chart {
	garden := Values{"garden": Values{"genericKubeconfigSecretName": "generic-garden-kubeconfig-0123"}}
	c.Given = utils.MergeMaps(c.Given, Values{"gardener": garden})
	return c
}

// TryRender returns the manifests of the chart, by the names of their templates.
func (c Chart) TryRender(values Values) (map[string]string, error) {
	archive, err := charts.Archive(c.Directory)
	if err != nil {
		return nil, err
	}
	renderer := chartrenderer.NewWithServerVersion(&version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.3"})
	rendered, err := renderer.RenderArchive(archive, c.Release, c.Namespace, utils.MergeMaps(values, c.Given))
	if err != nil {
		return nil, err
	}
	manifests := map[string]string{}
	for i, manifest := range rendered.Manifests {
		manifests[fmt.Sprintf("%s-%d", manifest.Name, i)] = manifest.Content
	}
	return manifests, nil
}

// Render returns the objects of the chart, decoded strictly.
func (c Chart) Render(t *testing.T, values Values) []client.Object {
	t.Helper()
	g := gomega.NewWithT(t)
	manifests, err := c.TryRender(values)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	decoder := serializer.NewCodecFactory(kubernetes.SeedScheme, serializer.EnableStrict).UniversalDeserializer()
	var objects []client.Object
	for _, name := range slices.Sorted(maps.Keys(manifests)) {
		object, _, err := decoder.Decode([]byte(manifests[name]), nil, nil)
		g.Expect(err).NotTo(gomega.HaveOccurred(), manifests[name])
		objects = append(objects, object.(client.Object))
	}
	return objects
}

// Defaults are the values of the chart's values.yaml.
func (c Chart) Defaults(t *testing.T) Values {
	t.Helper()
	g := gomega.NewWithT(t)
	data, err := charts.Files.ReadFile(path.Join(c.Directory, "values.yaml"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	values := Values{}
	g.Expect(yaml.UnmarshalStrict(data, &values)).To(gomega.Succeed())
	return values
}

// Variants are values that differ from the default in one place, for each place there is, by the path of that place.
func (c Chart) Variants(t *testing.T) map[string]Values {
	t.Helper()
	variants := map[string]Values{}
	c.vary(t, c.Defaults(t), "", func(path string, value any) {
		keys := strings.Split(path, ".")
		variant := Values{keys[len(keys)-1]: value}
		for _, key := range slices.Backward(keys[:len(keys)-1]) {
			variant = Values{key: variant}
		}
		variants[path] = variant
	})
	for path := range c.Other {
		gomega.NewWithT(t).Expect(variants).To(gomega.HaveKey(path), "there is no such value")
	}
	return variants
}

func (c Chart) vary(t *testing.T, values Values, prefix string, yield func(path string, value any)) {
	t.Helper()
	for key, value := range values {
		if other, named := c.Other[prefix+key]; named {
			yield(prefix+key, other)
			continue
		}
		switch value := value.(type) {
		case Values:
			gomega.NewWithT(t).Expect(value).NotTo(gomega.BeEmpty(), "name another value for "+prefix+key)
			c.vary(t, value, prefix+key+".", yield)
		case bool:
			yield(prefix+key, !value)
		case float64:
			yield(prefix+key, value+1)
		case string:
			yield(prefix+key, value+"x")
		default:
			t.Errorf("name another value for %s%s, which is a %T", prefix, key, value)
		}
	}
}

// Kinds of the objects.
func Kinds(objects []client.Object) (kinds []string) {
	for _, object := range objects {
		kinds = append(kinds, object.GetObjectKind().GroupVersionKind().Kind)
	}
	return kinds
}

// One is the only object of its type.
func One[T client.Object](t *testing.T, objects []client.Object) T {
	t.Helper()
	var found []T
	for _, object := range objects {
		if typed, ok := object.(T); ok {
			found = append(found, typed)
		}
	}
	gomega.NewWithT(t).Expect(found).To(gomega.HaveLen(1))
	return found[0]
}

// Args are the arguments of the Deployment's first container by their names.
func Args(t *testing.T, objects []client.Object) map[string]string {
	t.Helper()
	args := map[string]string{}
	for _, arg := range One[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers[0].Args {
		name, value, found := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		gomega.NewWithT(t).Expect(found).To(gomega.BeTrue(), arg)
		args[name] = value
	}
	return args
}
