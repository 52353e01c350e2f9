// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package example_test

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/gardener/gardener/pkg/api"
	"github.com/gardener/gardener/pkg/api/core/validation"
	"github.com/gardener/gardener/pkg/apis/core"
	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/gardener/gardener/pkg/apis/operator/v1alpha1"
	apiserverfeatures "github.com/gardener/gardener/pkg/apiserver/features"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/utils/gardener/operator"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/charts"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/codec"
	configv1alpha1 "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/config/v1alpha1"
	guardv1alpha1 "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	charttest "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/charts"
)

func TestShoot(t *testing.T) {
	g := NewWithT(t)
	objects := decode(g, "shoot.yaml")
	g.Expect(objects).To(HaveLen(1))
	shoot := internal(g, objects[0], &core.Shoot{})
	// Gardener's admission sets both from the CloudProfile before it validates.
	shoot.Spec.Kubernetes.Version = "1.36.3"
	shoot.Spec.Provider.Workers[0].Machine.Image = &core.ShootMachineImage{Name: "local", Version: "1.0.0"}
	apiserverfeatures.RegisterFeatureGates()
	g.Expect(validation.ValidateShoot(shoot)).To(BeEmpty())

	extensions := objects[0].(*gardencorev1beta1.Shoot).Spec.Extensions
	g.Expect(extensions).To(HaveLen(1))
	g.Expect(extensions[0].Type).To(Equal(guardv1alpha1.ExtensionType))

	config, err := codec.DecodeConfig(extensions[0].ProviderConfig)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(shown(g, extensions[0].ProviderConfig.Raw)).To(ConsistOf(charttest.FieldPaths(reflect.TypeFor[guardv1alpha1.GuardConfig](), "")))

	defaults, err := codec.DecodeConfig(nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Webhooks).NotTo(BeEmpty())
	config.Webhooks = nil
	g.Expect(config).To(Equal(defaults))
}

func TestComponentConfig(t *testing.T) {
	g := NewWithT(t)
	data, err := os.ReadFile("00-componentconfig.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	config, err := codec.DecodeControllerConfiguration(data)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(shown(g, data)).To(ConsistOf(charttest.FieldPaths(reflect.TypeFor[configv1alpha1.ControllerConfiguration](), "")))

	defaults, err := codec.DecodeControllerConfiguration(nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config).To(Equal(defaults))
}

func TestControllerRegistration(t *testing.T) {
	g := NewWithT(t)
	objects := decode(g, "controller-registration.yaml")
	g.Expect(objects).To(HaveLen(2))
	deployment := objects[0].(*gardencorev1.ControllerDeployment)
	registration := objects[1].(*gardencorev1beta1.ControllerRegistration)
	g.Expect(validation.ValidateControllerDeployment(internal(g, deployment, &core.ControllerDeployment{}))).To(BeEmpty())
	g.Expect(validation.ValidateControllerRegistration(internal(g, registration, &core.ControllerRegistration{}))).To(BeEmpty())

	g.Expect(registration.Spec.Deployment.DeploymentRefs).To(ConsistOf(gardencorev1beta1.DeploymentRef{Name: deployment.Name}))
	g.Expect(registration.Spec.Resources).To(HaveLen(1))
	resource := registration.Spec.Resources[0]
	g.Expect(resource.Kind).To(Equal("Extension"))
	g.Expect(resource.Type).To(Equal(guardv1alpha1.ExtensionType))
	// The promise of the extension hangs on this: it is called before the nodes go and before they come back.
	g.Expect(resource.Lifecycle.Reconcile).To(HaveValue(Equal(gardencorev1beta1.AfterKubeAPIServer)))
}

func TestOperatorExtension(t *testing.T) {
	g := NewWithT(t)
	objects := decode(g, "extension.yaml")
	g.Expect(objects).To(HaveLen(1))
	extension := objects[0].(*operatorv1alpha1.Extension)

	// What gardener-operator makes of it says the same as the other way to register.
	registration, deployment := operator.ControllerRegistrationForExtension(extension)
	g.Expect(validation.ValidateControllerDeployment(internal(g, deployment, &core.ControllerDeployment{}))).To(BeEmpty())
	g.Expect(validation.ValidateControllerRegistration(internal(g, registration, &core.ControllerRegistration{}))).To(BeEmpty())
	byHand := decode(g, "controller-registration.yaml")
	deploymentByHand, registrationByHand := byHand[0].(*gardencorev1.ControllerDeployment), byHand[1].(*gardencorev1beta1.ControllerRegistration)
	g.Expect(registration.Name).To(Equal(registrationByHand.Name))
	g.Expect(registration.Annotations).To(Equal(registrationByHand.Annotations))
	g.Expect(registration.Spec.Resources).To(Equal(registrationByHand.Spec.Resources))
	g.Expect(deployment.Helm.Values.Raw).To(MatchJSON(deploymentByHand.Helm.Values.Raw))
	g.Expect(deployment.InjectGardenKubeconfig).To(Equal(deploymentByHand.InjectGardenKubeconfig))
	g.Expect(deployment.Helm.OCIRepository.GetURL()).To(HaveSuffix(charts.Extension + ":" + chartVersion(g)))
}

// chartVersion is the version of the charts, and so the tag they are pushed with.
func chartVersion(g *WithT) string {
	data, err := os.ReadFile("../VERSION")
	g.Expect(err).NotTo(HaveOccurred())
	return strings.TrimPrefix(strings.TrimSpace(string(data)), "v")
}

func TestValuesAreThoseOfTheChart(t *testing.T) {
	g := NewWithT(t)
	values := charttest.Values{}
	g.Expect(yaml.Unmarshal(decode(g, "controller-registration.yaml")[0].(*gardencorev1.ControllerDeployment).Helm.Values.Raw, &values)).To(Succeed())
	_, err := charttest.Extension.TryRender(values)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(charttest.Extension.Defaults(t)["config"]).To(HaveKeyWithValue("hibernationConstraint", "Lift"))
	g.Expect(values["config"]).To(HaveKeyWithValue("hibernationConstraint", "Lift"))
}

// decode decodes the documents of a file strictly into Gardener's types.
func decode(g *WithT, file string) (objects []runtime.Object) {
	data, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	scheme := runtime.NewScheme()
	g.Expect(kubernetes.AddGardenSchemeToScheme(scheme)).To(Succeed())
	g.Expect(operatorv1alpha1.AddToScheme(scheme)).To(Succeed())
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, document := range bytes.Split(data, []byte("\n---\n")) {
		var content any
		g.Expect(yaml.Unmarshal(document, &content)).To(Succeed())
		if content == nil {
			continue
		}
		object, _, err := decoder.Decode(document, nil, nil)
		g.Expect(err).NotTo(HaveOccurred())
		objects = append(objects, object)
	}
	return objects
}

// internal is the object as Gardener's API server sees it, with its defaults.
func internal[T runtime.Object](g *WithT, object runtime.Object, into T) T {
	defaulted := object.DeepCopyObject()
	api.Scheme.Default(defaulted)
	g.Expect(api.Scheme.Convert(defaulted, into, nil)).To(Succeed())
	return into
}

// shown are the paths of all fields that a document sets, in the form of charttest.FieldPaths.
func shown(g *WithT, document []byte) []string {
	var content map[string]any
	g.Expect(yaml.Unmarshal(document, &content)).To(Succeed())
	delete(content, "apiVersion")
	delete(content, "kind")
	seen := map[string]bool{}
	collect(content, "", seen)
	var paths []string
	for path := range seen {
		paths = append(paths, path)
	}
	return paths
}

func collect(value any, path string, into map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		for name, child := range value {
			collect(child, path+"."+name, into)
		}
	case []any:
		for _, child := range value {
			collect(child, path+"[]", into)
		}
	default:
		into[path] = true
	}
}
