// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package garden_test shows on the real gardener-apiserver, and with the code of gardenlet and gardener-controller-manager, when
// a Shoot may be hibernated and what its status says.
package garden_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/controllermanager/controller/shoot/conditions"
	"github.com/gardener/gardener/pkg/controllermanager/controller/shoot/statuslabel"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/garden"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/report"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

func init() { logf.SetLogger(logr.Discard()) } // Gardener's code would complain without one

// landscape is a garden with one Shoot that is awake and does not have the extension.
type landscape struct {
	*WithT
	ctx       context.Context
	bench     *bench.Bench
	garden    *bench.Garden
	gardenlet *bench.Gardenlet
}

func newLandscape(t *testing.T) *landscape {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	l := &landscape{WithT: NewWithT(t), ctx: ctx}
	var err error
	l.bench, err = bench.New(ctx, bench.Options{SeedCRDs: append(append([]string{}, bench.DefaultSeedCRDs...), bench.CareSeedCRDs...)})
	l.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(l.bench.Close()).To(Succeed()) })
	l.garden, err = bench.NewGarden(ctx, logr.Discard())
	l.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(l.garden.Close()).To(Succeed()) })
	options := bench.GardenletOptions{Garden: l.garden}
	l.Expect(l.garden.CreateShoot(ctx, l.bench, options)).To(Succeed())
	l.gardenlet = bench.NewGardenlet(l.bench, options)
	t.Cleanup(l.gardenlet.Close)
	l.Expect(l.gardenlet.Reconcile(ctx)).To(Succeed())
	return l
}

func (l *landscape) key() types.NamespacedName {
	return client.ObjectKeyFromObject(l.gardenlet.Shoot())
}

func (l *landscape) care() {
	l.Expect(l.gardenlet.Care(l.ctx, nil)).To(Succeed())
}

func (l *landscape) constraint(constraintType gardencorev1beta1.ConditionType) *gardencorev1beta1.Condition {
	return v1beta1helper.GetCondition(l.gardenlet.Shoot().Status.Constraints, constraintType)
}

// hibernates sets hibernation.enabled as a Shoot's owner does.
func (l *landscape) hibernates() error {
	return l.gardenlet.TryEdit(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Hibernation.Enabled = ptr.To(true) })
}

func problematic() *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "pods"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "pods.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			ClientConfig:  admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "nobody"}},
			// Only what the test deletes again: the Shoot must go on running.
			ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1beta1constants.ShootNoCleanup: "true"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}
}

func TestGarden(t *testing.T) {
	l := newLandscape(t)
	for _, story := range []struct {
		name string
		play func(*landscape)
	}{
		{"the examples are accepted", examplesAreAccepted},
		{"constraints stay whoever else writes the status", constraintsStay},
		{"a Shoot that might not wake up is refused to hibernate", hibernationIsRefused},
	} {
		t.Run(story.name, func(t *testing.T) {
			on := *l
			on.WithT = NewWithT(t)
			story.play(&on)
		})
	}
}

// examplesAreAccepted by Gardener's admission: what an operator applies, and a Shoot with every option.
func examplesAreAccepted(l *landscape) {
	own := &gardencorev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: bench.ExtensionType}}
	l.Expect(l.garden.Client().Delete(l.ctx, own)).To(Succeed()) // two may not be primary for one type
	registration := l.example("controller-registration.yaml")
	l.Expect(registration).To(HaveLen(2))
	for _, object := range registration {
		l.Expect(l.garden.Client().Create(l.ctx, object, client.DryRunAll, client.FieldValidation("Strict"))).To(Succeed())
	}
	shoot := l.example("shoot.yaml")
	l.Expect(shoot).To(HaveLen(1))
	// What the example refers to is not here; the rest is as it stands.
	spec := l.gardenlet.Shoot().Spec
	for field, value := range map[string]any{
		"cloudProfile.name": spec.CloudProfile.Name, "credentialsBindingName": *spec.CredentialsBindingName, "region": spec.Region, "provider.type": spec.Provider.Type,
	} {
		l.Expect(unstructured.SetNestedField(shoot[0].Object, value, append([]string{"spec"}, strings.Split(field, ".")...)...)).To(Succeed())
	}
	workers, _, err := unstructured.NestedSlice(shoot[0].Object, "spec", "provider", "workers")
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(unstructured.SetNestedField(workers[0].(map[string]any), spec.Provider.Workers[0].Machine.Type, "machine", "type")).To(Succeed())
	l.Expect(unstructured.SetNestedSlice(shoot[0].Object, workers, "spec", "provider", "workers")).To(Succeed())
	shoot[0].SetNamespace(l.key().Namespace)
	l.Expect(l.garden.Client().Create(l.ctx, shoot[0], client.DryRunAll, client.FieldValidation("Strict"))).To(Succeed())
}

// example reads the objects of a file in example/.
func (l *landscape) example(name string) []*unstructured.Unstructured {
	data, err := os.ReadFile(filepath.Join("..", "..", "example", name))
	l.Expect(err).NotTo(HaveOccurred())
	var objects []*unstructured.Unstructured
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		l.Expect(err).NotTo(HaveOccurred())
		object := &unstructured.Unstructured{}
		l.Expect(yaml.Unmarshal(document, object)).To(Succeed())
		if object.GetKind() != "" {
			objects = append(objects, object)
		}
	}
}

func hibernationIsRefused(l *landscape) {
	configuration := problematic()
	l.Expect(l.bench.Shoot.Client().Create(l.ctx, configuration)).To(Succeed())
	l.care()
	possible := l.constraint(gardencorev1beta1.ShootHibernationPossible)
	l.Expect(possible).NotTo(BeNil())
	l.Expect(possible.Status).To(Equal(gardencorev1beta1.ConditionFalse))
	l.Expect(possible.Codes).To(ConsistOf(gardencorev1beta1.ErrorProblematicWebhook))

	err := l.hibernates()
	l.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
	l.Expect(err).To(MatchError(ContainSubstring(`'HibernationPossible' constraint is 'False': ValidatingWebhookConfiguration "pods" is problematic: ` +
		`webhook "pods.example.com" with failurePolicy "Fail" and 10s timeout might prevent worker nodes from properly joining the shoot cluster`)))

	before := configuration.DeepCopy()
	metav1.SetMetaDataLabel(&configuration.ObjectMeta, v1alpha1.ClaimLabel, v1alpha1.ClaimValue)
	l.Expect(l.bench.Shoot.Client().Patch(l.ctx, configuration, client.MergeFrom(before))).To(Succeed())
	l.Expect(l.hibernates()).NotTo(Succeed(), "the constraint is as old as gardenlet's last look")
	l.care()
	l.Expect(l.constraint(gardencorev1beta1.ShootHibernationPossible).Status).To(Equal(gardencorev1beta1.ConditionTrue))
	l.Expect(l.hibernates()).To(Succeed())
}

func constraintsStay(l *landscape) {
	constraints := garden.New(l.garden.Client(), clock.RealClock{})
	open := report.Input{
		Phase: phase.Asleep, Gate: &v1alpha1.GateStatus{State: v1alpha1.GateLifted, Message: "Lifted."},
		Hooks: report.FromRecord(map[string]v1alpha1.HookRecord{"one": {Hook: "one"}, "two": {Hook: "two"}}),
	}
	l.Expect(constraints.Write(l.ctx, l.key(), report.Constraints(open))).To(Succeed())
	written := l.gardenlet.Shoot()
	enforced, prepared := l.constraint(v1alpha1.ConstraintWebhooksEnforced), l.constraint(v1alpha1.ConstraintHibernationPrepared)
	l.Expect(enforced.Status).To(Equal(gardencorev1beta1.ConditionFalse))
	l.Expect(enforced.Message).To(Equal("The Shoot sleeps, 2 webhooks are fail-open until it is awake."))
	l.Expect(prepared.Status).To(Equal(gardencorev1beta1.ConditionTrue))

	l.Expect(constraints.Write(l.ctx, l.key(), report.Constraints(open))).To(Succeed())
	l.Expect(l.gardenlet.Shoot().ResourceVersion).To(Equal(written.ResourceVersion), "nothing is written without a change")

	l.care()
	request := reconcile.Request{NamespacedName: l.key()}
	before := l.gardenlet.Shoot()
	l.Expect(l.gardenlet.TryEdit(func(shoot *gardencorev1beta1.Shoot) {
		shoot.Status.Conditions = append(shoot.Status.Conditions, *enforced) // what gardener-controller-manager prunes
	})).To(Succeed())
	_, err := (&conditions.Reconciler{Client: l.garden.Client()}).Reconcile(l.ctx, request)
	l.Expect(err).NotTo(HaveOccurred())
	_, err = (&statuslabel.Reconciler{Client: l.garden.Client()}).Reconcile(l.ctx, request)
	l.Expect(err).NotTo(HaveOccurred())
	after := l.gardenlet.Shoot()
	l.Expect(v1beta1helper.GetCondition(after.Status.Conditions, v1alpha1.ConstraintWebhooksEnforced)).To(BeNil(), "as a condition it would not have stayed")
	l.Expect(after.Status.Conditions).To(HaveLen(len(before.Status.Conditions)))
	l.Expect(l.constraint(v1alpha1.ConstraintWebhooksEnforced)).To(Equal(enforced))
	l.Expect(l.constraint(v1alpha1.ConstraintHibernationPrepared)).To(Equal(prepared))
	l.Expect(l.constraint(gardencorev1beta1.ShootHibernationPossible)).NotTo(BeNil(), "gardenlet's own constraints are there, too")

	withOurs := after.Labels[v1beta1constants.ShootStatus]
	l.Expect(constraints.Remove(l.ctx, l.key())).To(Succeed())
	l.Expect(l.constraint(v1alpha1.ConstraintWebhooksEnforced)).To(BeNil())
	l.Expect(l.constraint(v1alpha1.ConstraintHibernationPrepared)).To(BeNil())
	l.Expect(l.constraint(gardencorev1beta1.ShootHibernationPossible)).NotTo(BeNil())
	_, err = (&statuslabel.Reconciler{Client: l.garden.Client()}).Reconcile(l.ctx, request)
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(l.gardenlet.Shoot().Labels[v1beta1constants.ShootStatus]).To(Equal(withOurs), "they do not colour the status label")

	l.Expect(constraints.Write(l.ctx, types.NamespacedName{Namespace: l.key().Namespace, Name: "gone"}, report.Constraints(open))).To(Succeed())
}
