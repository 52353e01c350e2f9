//go:build e2e

// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e_test plays what goes wrong around sleeping and waking up on real control planes: Gardener's own flow, real
// nodes and pods, and real Kyverno where it is about Kyverno.
package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

func init() { logf.SetLogger(logr.Discard()) } // Gardener's flows would complain without one

// shortStabilization keeps the in-house stories short; what it does is tested elsewhere.
const shortStabilization = `{"apiVersion":"hibernation-guard.extensions.gardener.cloud/v1alpha1","kind":"GuardConfig","stabilization":"5s"}`

// careOften is what the controller runs with: stories would wait 5 minutes for the care pass.
const careOften = `{"apiVersion":"config.hibernation-guard.extensions.gardener.cloud/v1alpha1","kind":"ControllerConfiguration","care":{"syncPeriod":"15s"}}`

// stage is an awake Shoot with the extension, on which stories are played one after the other.
type stage struct {
	*WithT
	parent, t  *testing.T
	ctx        context.Context
	bench      *bench.Bench
	gardenlet  *bench.Gardenlet
	controller *bench.Controller
	witness    *bench.Witness

	// patience is how long the originals may take to come back after a wake-up.
	patience time.Duration
}

// newStage starts a bench, the extension's controller and a Shoot with the extension.
func newStage(t *testing.T, o bench.Options, providerConfig string) *stage {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	t.Cleanup(cancel)
	s := &stage{WithT: NewWithT(t), parent: t, t: t, ctx: ctx, patience: 90 * time.Second}
	begin := time.Now()
	var err error
	s.bench, err = bench.New(ctx, o)
	s.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(s.bench.Close()).To(Succeed()) })
	t.Cleanup(s.showLogs)
	s.witness, err = s.bench.Witness(ctx)
	s.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(s.witness.Close)
	options := bench.GardenletOptions{Extension: true, OnStep: s.showFailure}
	if providerConfig != "" {
		options.ProviderConfig = &runtime.RawExtension{Raw: []byte(providerConfig)}
	}
	s.gardenlet = bench.NewGardenlet(s.bench, options)
	t.Cleanup(s.gardenlet.Close)
	s.controller, err = s.bench.StartController(ctx, bench.ControllerOptions{Config: careOften})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.gardenlet.Reconcile(ctx)).To(Succeed())
	t.Logf("stage ready after %s", since(begin))
	return s
}

// story plays on the stage and expects the Shoot to be whole afterwards. After a failed story the stage is not used again.
func (s *stage) story(name string, play func()) {
	s.storyBut(nothing, name, play)
}

// storyBut is a story in which some things may change.
func (s *stage) storyBut(allowed mayDiffer, name string, play func()) {
	s.parent.Run(name, func(t *testing.T) {
		if s.parent.Failed() {
			t.Skip("an earlier story failed on this stage")
		}
		s.WithT, s.t = NewWithT(t), t
		begin := time.Now()
		before, err := s.bench.Snapshot(s.ctx)
		s.Expect(err).NotTo(HaveOccurred())
		play()
		played := time.Now()
		s.expectWhole(before, allowed)
		t.Logf("%s: whole %s after the story, %s in all", name, since(played), since(begin))
	})
}

func since(t time.Time) string { return time.Since(t).Round(100 * time.Millisecond).String() }

// showFailure logs failed steps of gardenlet: some stories may have them, and it says where a story hangs.
func (s *stage) showFailure(step bench.Step) {
	if step.Err != nil {
		s.t.Logf("%s: %v", step.Name, step.Err)
	}
}

// showLogs logs what the extension's controllers said if a story failed.
func (s *stage) showLogs() {
	if !s.parent.Failed() {
		return
	}
	paths, _ := filepath.Glob(filepath.Join(s.bench.Dir, "log", "gardener-extension-*.log"))
	for _, path := range paths {
		content, err := os.ReadFile(path)
		s.parent.Log(path, err, string(content[max(0, len(content)-10000):]))
	}
}

// hibernate expects the Shoot to fall asleep.
func (s *stage) hibernate() {
	s.t.Helper()
	s.within(4*time.Minute, s.gardenlet.Hibernate)
	s.Expect(s.bench.Shoot.Running()).To(BeFalse())
	s.Expect(s.gardenlet.Shoot().Status.IsHibernated).To(BeTrue())
}

// wakeUp expects the Shoot to wake up.
func (s *stage) wakeUp() {
	s.t.Helper()
	s.within(4*time.Minute, s.gardenlet.WakeUp)
	s.Expect(s.bench.Shoot.Running()).To(BeTrue())
	s.Expect(s.gardenlet.Shoot().Status.IsHibernated).To(BeFalse())
}

func (s *stage) reconcile() {
	s.t.Helper()
	s.within(2*time.Minute, s.gardenlet.Reconcile)
}

func (s *stage) within(timeout time.Duration, do func(context.Context) error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, timeout)
	defer cancel()
	s.Expect(do(ctx)).To(Succeed())
}

// stopped plays a flow that ends after a step as if gardenlet had been killed.
func (s *stage) stopped(step string, flow func(context.Context) error) {
	s.t.Helper()
	s.gardenlet.StopAfter(step)
	ctx, cancel := context.WithTimeout(s.ctx, 3*time.Minute)
	defer cancel()
	s.Expect(flow(ctx)).To(MatchError(bench.ErrStopped))
}

// inBackground returns a function that expects flow to have succeeded, once it has ended.
func (s *stage) inBackground(flow func(context.Context) error) (wait func()) {
	ctx, cancel := context.WithTimeout(s.ctx, 5*time.Minute)
	result := make(chan error, 1)
	go func() { result <- flow(ctx) }()
	s.parent.Cleanup(cancel)
	return func() {
		defer cancel()
		s.Expect(<-result).To(Succeed())
	}
}

// extension is nil when there is none.
func (s *stage) extension() *extensionsv1alpha1.Extension {
	extension := &extensionsv1alpha1.Extension{}
	err := s.bench.Seed.Client().Get(s.ctx, client.ObjectKey{Namespace: s.bench.Namespace, Name: bench.ExtensionType}, extension)
	s.Expect(client.IgnoreNotFound(err)).To(Succeed())
	if err != nil {
		return nil
	}
	return extension
}

// forgetRecord empties the extension's status.state.
func (s *stage) forgetRecord() {
	s.t.Helper()
	extension := s.extension()
	s.Expect(s.state().Hooks).NotTo(BeEmpty(), "there was no record to lose")
	patch := client.MergeFrom(extension.DeepCopy())
	extension.Status.State = nil
	s.Expect(s.bench.Seed.Client().Status().Patch(s.ctx, extension, patch)).To(Succeed())
}

// patch changes a webhook's configuration as a person would.
func (s *stage) patch(w *bench.Webhook, patch string) {
	s.t.Helper()
	var configuration client.Object = &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if w.Name == onNodes {
		configuration = &admissionregistrationv1.MutatingWebhookConfiguration{}
	}
	configuration.SetName(w.Name)
	s.Expect(s.bench.Shoot.Client().Patch(s.ctx, configuration, client.RawPatch(types.StrategicMergePatchType, []byte(patch)))).To(Succeed())
}

const onPods, onNodes = "on-pods", "on-nodes"

// inHouse are two fail-closed webhooks, without which no node and no pod can be created.
type inHouse struct{ pods, nodes *bench.Webhook }

// installInHouse installs a validating webhook on pods and a mutating one on nodes.
func (s *stage) installInHouse(operations ...admissionregistrationv1.OperationType) inHouse {
	s.t.Helper()
	install := func(o bench.WebhookOptions) *bench.Webhook {
		w, err := s.bench.InstallWebhook(s.ctx, o)
		s.Expect(err).NotTo(HaveOccurred())
		return w
	}
	rules := func(resource string) []admissionregistrationv1.RuleWithOperations {
		return []admissionregistrationv1.RuleWithOperations{{Operations: operations, Rule: admissionregistrationv1.Rule{
			APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource},
		}}}
	}
	return inHouse{
		pods: install(bench.WebhookOptions{Name: onPods, Rules: rules("pods"), TimeoutSeconds: ptr.To[int32](7)}),
		nodes: install(bench.WebhookOptions{
			Name: onNodes, Mutating: true, FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			Rules: rules("nodes"),
		}),
	}
}
