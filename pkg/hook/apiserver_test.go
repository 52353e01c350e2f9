// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package hook_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
)

// server is an API server with one configuration of one kind, made by helm.
type server struct {
	*WithT
	t      *testing.T
	client dynamic.Interface
	kind   hook.Kind
}

// timeout is a hook with its two fields; empty ones are left out.
type timeout struct {
	name, policy string
	seconds      int32
}

const configurationName = "cfg"

func (s *server) resource() dynamic.NamespaceableResourceInterface {
	return s.client.Resource(admissionregistrationv1.SchemeGroupVersion.WithResource(strings.ToLower(string(s.kind)) + "s"))
}

// helmApplies makes the configuration, for as long as the test runs.
func (s *server) helmApplies(hooks ...timeout) {
	s.Expect(s.helm(hooks...)).To(Succeed())
	ctx := context.WithoutCancel(s.t.Context()) // which ends before the clean-up
	s.t.Cleanup(func() { s.Expect(s.resource().Delete(ctx, configurationName, metav1.DeleteOptions{})).To(Succeed()) })
}

// helm applies as helm, Flux or Argo do on the server's side, without force.
func (s *server) helm(hooks ...timeout) error {
	var entries []any
	for _, h := range hooks {
		e := map[string]any{
			"name": h.name, "sideEffects": "None", "admissionReviewVersions": []any{"v1"},
			"clientConfig": map[string]any{"service": map[string]any{"namespace": "hooks", "name": "hook"}},
			"rules":        []any{map[string]any{"apiGroups": []any{"example.com"}, "apiVersions": []any{"v1"}, "resources": []any{"things"}, "operations": []any{"CREATE"}}},
		}
		if h.policy != "" {
			e["failurePolicy"] = h.policy
		}
		if h.seconds != 0 {
			e["timeoutSeconds"] = int64(h.seconds)
		}
		entries = append(entries, e)
	}
	_, err := s.resource().Apply(s.t.Context(), configurationName, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": string(s.kind),
		"metadata": map[string]any{"name": configurationName}, "webhooks": entries,
	}}, metav1.ApplyOptions{FieldManager: "helm"})
	return err
}

func (s *server) read() (hook.Configuration, *unstructured.Unstructured) {
	object, err := s.resource().Get(s.t.Context(), configurationName, metav1.GetOptions{})
	s.Expect(err).NotTo(HaveOccurred())
	if s.kind == hook.Mutating {
		o := &admissionregistrationv1.MutatingWebhookConfiguration{}
		s.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, o)).To(Succeed())
		return hook.FromMutating(o), object
	}
	o := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	s.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, o)).To(Succeed())
	return hook.FromValidating(o), object
}

func (s *server) send(manager string, p hook.Patch) error {
	_, err := s.resource().Patch(s.t.Context(), configurationName, p.Type, p.Data, metav1.PatchOptions{FieldManager: manager})
	return err
}

func (s *server) succeeds(err error) {
	s.t.Helper()
	s.Expect(err).NotTo(HaveOccurred())
}

// open sends the patch that opens the named hooks of c, with 1 s for both kinds.
func (s *server) open(c hook.Configuration, names ...string) error {
	open, originals := valuesOf{}, originalsOf{}
	for _, name := range names {
		h, _ := c.Hook(name)
		open[name], originals[name] = hook.OpenValues(h, h.Values, 1, 1), h.Values.Original()
	}
	p, err := hook.OpenPatch(c, open, originals)
	s.Expect(err).NotTo(HaveOccurred())
	return s.send(v1alpha1.FieldManager, p)
}

// restore sends the patch that gives the named hook what it had in before.
func (s *server) restore(c hook.Configuration, name string, before hook.Configuration, remaining originalsOf) error {
	h, _ := c.Hook(name)
	own, _ := before.Hook(name)
	p, err := hook.RestorePatch(c, valuesOf{name: h.Values}, valuesOf{name: own.Values}, remaining)
	s.Expect(err).NotTo(HaveOccurred())
	return s.send(v1alpha1.FieldManager, p)
}

func (s *server) release(c hook.Configuration, owners map[string][]v1alpha1.FieldOwner) error {
	p, ok, err := hook.ReleasePatch(c, owners)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(ok).To(BeTrue())
	return s.send(v1alpha1.FieldManager, p)
}

// cycle opens, restores and releases all hooks that are keys of owners.
func (s *server) cycle(before hook.Configuration, owners map[string][]v1alpha1.FieldOwner) {
	from, to := valuesOf{}, valuesOf{}
	var names []string
	for name := range owners {
		h, _ := before.Hook(name)
		names, from[name], to[name] = append(names, name), hook.OpenValues(h, h.Values, 1, 1), h.Values
	}
	s.succeeds(s.open(before, names...))
	open, _ := s.read()
	p, err := hook.RestorePatch(open, from, to, nil)
	s.Expect(err).NotTo(HaveOccurred())
	s.succeeds(s.send(v1alpha1.FieldManager, p))
	restored, _ := s.read()
	s.succeeds(s.release(restored, owners))
}

// entryOf is what the manager owns.
func entryOf(o *unstructured.Unstructured, manager string) *metav1.FieldsV1 {
	for _, e := range o.GetManagedFields() {
		if e.Manager == manager {
			return e.FieldsV1
		}
	}
	return nil
}

// withoutGuarded is the object without the two fields, our annotation and what the API server counts up.
func withoutGuarded(o *unstructured.Unstructured) map[string]any {
	o = o.DeepCopy()
	o.SetManagedFields(nil)
	o.SetResourceVersion("")
	o.SetGeneration(0)
	annotations := o.GetAnnotations()
	delete(annotations, v1alpha1.OriginalsAnnotation)
	o.SetAnnotations(annotations)
	if len(annotations) == 0 {
		o.SetAnnotations(nil)
	}
	for _, w := range o.Object["webhooks"].([]any) {
		delete(w.(map[string]any), "failurePolicy")
		delete(w.(map[string]any), "timeoutSeconds")
	}
	return o.Object
}

// startAPIServer starts etcd and kube-apiserver on loopback until the test ends.
func startAPIServer(t *testing.T) dynamic.Interface {
	t.Helper()
	g := NewWithT(t)
	environment := &envtest.Environment{BinaryAssetsDirectory: binaries(t)}
	t.Cleanup(func() { g.Expect(environment.Stop()).To(Succeed()) }) // also after a start that failed half-way
	config, err := environment.Start()
	g.Expect(err).NotTo(HaveOccurred())
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	return client
}

// binaries is a directory with etcd and kube-apiserver under the names that envtest looks for.
func binaries(t *testing.T) string {
	t.Helper()
	working, err := os.Getwd()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	root := filepath.Join(working, "..", "..")
	directory := t.TempDir()
	for name, candidates := range map[string][]string{"kube-apiserver": {"kube-apiserver"}, "etcd": {"etcd", "server"}} {
		var found string
		for _, candidate := range candidates {
			path := filepath.Join(root, "bin", candidate)
			if _, err := os.Stat(path); found == "" && err == nil {
				found = path
			} else if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatalf("failed to look for %s: %v", name, err)
			}
		}
		if found == "" {
			t.Fatalf("there is no %s in %s: run `make tools` first", name, filepath.Join(root, "bin"))
		}
		NewWithT(t).Expect(os.Symlink(found, filepath.Join(directory, name))).To(Succeed())
	}
	return directory
}
