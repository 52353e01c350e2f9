// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// Names in Kyverno's manifest and configurations.
const (
	KyvernoNamespace        = "kyverno"
	kyvernoAdmission        = "kyverno-admission-controller"
	kyvernoService          = "kyverno-svc"
	kyvernoResourceWebhooks = "kyverno-resource-validating-webhook-cfg"
	kyvernoComponent        = "app.kubernetes.io/component"
)

var clusterPolicyKind = schema.GroupVersionKind{Group: "kyverno.io", Version: "v1", Kind: "ClusterPolicy"}

// Kyverno is the real Kyverno behind its real Deployments, Services and RBAC. It runs without its init container.
type Kyverno struct {
	bench *Bench
}

// InstallKyverno applies Kyverno's manifest, waits until the admission controller serves, and sets b.Kyverno.
func (b *Bench) InstallKyverno(ctx context.Context) (*Kyverno, error) {
	begin := time.Now()
	k := &Kyverno{bench: b}
	b.Machines.Register(&kyvernoRunner{bench: b, all: b.kyvernoAll})
	objects, err := kyvernoManifest(ctx)
	if err != nil {
		return nil, err
	}
	// CRDs first: Kyverno ends if one is missing.
	isCRD := func(o *unstructured.Unstructured) bool { return o.GetKind() == "CustomResourceDefinition" }
	creations, createCtx := errgroup.WithContext(ctx)
	creations.SetLimit(4)
	for _, object := range objects {
		if isCRD(object) {
			creations.Go(func() error { return k.createCRD(createCtx, object) })
		}
	}
	if err := creations.Wait(); err != nil {
		return nil, err
	}
	for _, object := range objects {
		if !isCRD(object) {
			if err := createAll(ctx, b.Shoot.Client(), object); err != nil {
				return nil, err
			}
		}
	}
	b.Log.Info("Kyverno installed", "objects", len(objects), "took", time.Since(begin).Round(time.Millisecond).String())
	if err := k.WaitServing(ctx); err != nil {
		return nil, err
	}
	b.Log.Info("Kyverno serves", "took", time.Since(begin).Round(time.Millisecond).String())
	b.Kyverno = k
	return k, nil
}

// kyvernoManifest is config/install-latest-testing.yaml of the module that hack/kyverno builds from.
func kyvernoManifest(ctx context.Context) ([]*unstructured.Unstructured, error) {
	dir, err := moduleDir(ctx, "hack/kyverno", "github.com/kyverno/kyverno")
	if err != nil {
		return nil, err
	}
	file, err := os.Open(filepath.Join(dir, "config", "install-latest-testing.yaml")) // #nosec G304 -- in the module cache
	if err != nil {
		return nil, fmt.Errorf("failed to open manifest: %w", err)
	}
	defer file.Close()
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(file))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("failed to read manifest: %w", err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, fmt.Errorf("failed to decode manifest: %w", err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

func (k *Kyverno) createCRD(ctx context.Context, object *unstructured.Unstructured) error {
	c := k.bench.Shoot.Client()
	if err := createAll(ctx, c, object); err != nil {
		return err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: object.GetName()}}
	return waitFor(ctx, c, crd, "established", func() bool { return established(crd) })
}

// Scale sets the replicas of the admission controller and returns at once. At 0, Kyverno deletes its webhook
// configurations when it ends.
func (k *Kyverno) Scale(ctx context.Context, replicas int32) error {
	return scale(ctx, k.bench.Shoot.Client(), KyvernoNamespace, kyvernoAdmission, replicas)
}

// WaitServing waits until all replicas of the admission controller are Ready and one is an endpoint of its Service.
func (k *Kyverno) WaitServing(ctx context.Context) error {
	c := k.bench.Shoot.Client()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: KyvernoNamespace, Name: kyvernoAdmission}}
	if err := waitFor(ctx, c, deployment, "ready", func() bool {
		s := deployment.Status
		return s.ObservedGeneration == deployment.Generation && s.ReadyReplicas > 0 &&
			s.ReadyReplicas == ptr.Deref(deployment.Spec.Replicas, 1) && s.Replicas == s.ReadyReplicas
	}); err != nil {
		return err
	}
	return waitEndpoint(ctx, c, KyvernoNamespace, kyvernoService)
}

// RequireLabel creates a ClusterPolicy that refuses pods without the label, in namespaces, or everywhere if none is
// given; and waits until it is enforced.
func (k *Kyverno) RequireLabel(ctx context.Context, name, label string, namespaces ...string) error {
	resources := map[string]any{"kinds": []any{"Pod"}}
	if len(namespaces) > 0 {
		resources["namespaces"] = namespaces
	}
	return k.createPolicy(ctx, name, "pods", resources, map[string]any{
		"labels": map[string]any{label: "?*"},
	})
}

// RefuseAnnotation creates a ClusterPolicy on kinds `*` that refuses whatever carries the annotation, and waits until
// it is enforced. Kyverno's webhook then gets requests of all kinds outside the namespaces it leaves out, cluster-wide
// ones such as nodes and namespaces included.
func (k *Kyverno) RefuseAnnotation(ctx context.Context, name, annotation string) error {
	return k.createPolicy(ctx, name, "*", map[string]any{"kinds": []any{"*"}}, map[string]any{
		"=(annotations)": map[string]any{"X(" + annotation + ")": "null"},
	})
}

func (k *Kyverno) createPolicy(ctx context.Context, name, resource string, match, metadata map[string]any) error {
	policy := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"background": false,
			"rules": []any{map[string]any{
				"name":  name,
				"match": map[string]any{"any": []any{map[string]any{"resources": match}}},
				"validate": map[string]any{
					"failureAction": "Enforce",
					"message":       "refused by policy " + name,
					"pattern":       map[string]any{"metadata": metadata},
				},
			}},
		},
	}}
	policy.SetGroupVersionKind(clusterPolicyKind)
	policy.SetName(name)
	if err := k.bench.Shoot.Client().Create(ctx, policy); err != nil {
		return fmt.Errorf("failed to create policy %s: %w", name, err)
	}
	return k.WaitPolicy(ctx, name, resource)
}

// WaitPolicy waits until Kyverno calls a ClusterPolicy ready and its webhook configuration has a fail-closed rule on
// resource.
func (k *Kyverno) WaitPolicy(ctx context.Context, name, resource string) error {
	c := k.bench.Shoot.Client()
	policy := &unstructured.Unstructured{}
	policy.SetGroupVersionKind(clusterPolicyKind)
	policy.SetName(name)
	if err := waitFor(ctx, c, policy, "ready", func() bool { return policyReady(policy) }); err != nil {
		return err
	}
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: kyvernoResourceWebhooks}}
	return waitFor(ctx, c, configuration, "fail-closed on "+resource, func() bool {
		return slices.ContainsFunc(configuration.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
			return ptr.Deref(w.FailurePolicy, "") == admissionregistrationv1.Fail &&
				slices.ContainsFunc(w.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
					return slices.Contains(r.Resources, resource) || slices.Contains(r.Resources, resource+"/*")
				})
		})
	})
}

func policyReady(policy *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(policy.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, ok := c.(map[string]any)
		return ok && condition["type"] == "Ready" && condition["status"] == "True"
	})
}

// Ended is when the last process of the admission controller ended; zero if none has.
func (k *Kyverno) Ended() time.Time {
	return k.bench.Machines.Ended(func(pod *corev1.Pod) bool {
		return pod.Namespace == KyvernoNamespace && pod.Labels[kyvernoComponent] == "admission-controller"
	})
}
