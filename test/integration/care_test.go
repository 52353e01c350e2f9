// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	pkggate "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/gate"
)

const (
	seedGroup   = "/apis/extensions.gardener.cloud"
	asksForSeed = "get " + seedGroup
)

func anything(request) bool { return true }

func (s *theShoot) requests() []string {
	var out []string
	for _, r := range s.gate.seen(anything) {
		out = append(out, r.verb+" "+r.resource)
	}
	return out
}

func TestPassOverAnAwakeShootIsTwoListsAndKeepsNothing(t *testing.T) {
	s, _ := newFlaggedShoot(t)
	s.enabled()
	s.Eventually(s.gateSays).Should(Equal("Lifted"))
	s.aPassLater()
	s.Eventually(s.gate.openConnections).Should(BeZero())
	s.gate.forget()
	s.nudge()
	s.Eventually(s.requests).ShouldNot(BeEmpty())
	s.Eventually(s.gate.openConnections).Should(BeZero())
	count := map[string]int{}
	for _, r := range s.requests() {
		count[r]++
	}
	passes := count[asksForSeed]
	s.Expect(passes).To(BeNumerically(">", 0))
	s.Expect(count).To(Equal(map[string]int{"list " + validatingResource: passes, "list " + mutatingResource: passes, asksForSeed: passes}))
}

func TestServicesOfHooksAreLookedForOnceAnHour(t *testing.T) {
	s := newShoot(t)
	s.validating("orphan", hookOf{name: "orphan", policy: "Ignore", timeout: 3, backend: "nobody"})
	asked := func() int {
		return len(s.gate.seen(func(r request) bool { return r.verb == "get" && r.resource == "services" && r.name == "nobody" }))
	}
	s.aPassLater()
	s.Eventually(s.findings).Should(ConsistOf("Orphan " + s.full("orphan")))
	s.aPassLater()
	s.Expect(asked()).To(Equal(1))
	s.service("nobody")
	s.later(time.Hour)
	s.Eventually(s.findings).Should(BeEmpty())
	s.Expect(asked()).To(Equal(2))
}

func (s *theShoot) findings() []string {
	var out []string
	for _, f := range s.guardStatus().Findings {
		out = append(out, f.Reason+" "+f.Name)
	}
	return out
}

func TestFirstPassesAfterARestartAreSpreadOverTheSyncPeriod(t *testing.T) {
	s := newShoot(t)
	s.Eventually(s.gateSays).Should(Equal("Open"))
	s.controller.end()
	s.clock.ahead.Store(int64(24 * time.Hour)) // the Extension is not new
	s.gate.cut()                               // a process that ends keeps nothing
	s.Eventually(s.gate.openConnections).Should(BeZero())
	s.gate.forget()
	s.startController()
	s.Consistently(s.requests).Should(BeEmpty(), "a chance of one in three hundred that it is due at once")
	s.clock.ahead.Add(int64(5 * time.Minute))
	s.nudge()
	s.Eventually(s.requests).ShouldNot(BeEmpty())

	s.controller.end()
	s.gate.cut() // a process that ends keeps nothing
	s.Eventually(s.gate.openConnections).Should(BeZero())
	s.gate.forget()
	s.startController()
	s.Consistently(s.requests).Should(BeEmpty())
	s.flowBegins(false) // a change is looked at now
	s.flowEnds()
	s.Eventually(s.requests).ShouldNot(BeEmpty())
}

func TestShootThatCannotBeReadIsTriedAgainAndNoAlarm(t *testing.T) {
	s := newShootWithoutExtension(t)
	withFlagged(s)
	s.gate.fails(always, answers(http.StatusForbidden, "Forbidden", "not yet"), func(r request) bool { return r.resource == validatingResource })
	s.flow(gardencorev1beta1.LastOperationTypeReconcile, false)
	s.call()
	s.flowEnds()
	s.Expect(s.condition()).To(HavePrefix("True WebhooksEnforced"))
	s.gate.mend()
	s.Eventually(s.gateSays).Should(Equal("Lifted"), "with no event to tell")
}

func TestReportForTheOwnerIsWrittenOnChangeOnly(t *testing.T) {
	s := newShoot(t)
	touches := func() []request {
		return s.gate.seen(func(r request) bool { return r.resource == "configmaps" && r.name == v1alpha1.ReportName })
	}
	s.Eventually(s.gateSays).Should(Equal("Open"))
	s.aPassLater()
	s.gate.forget()
	s.aPassLater()
	s.Expect(touches()).To(BeEmpty())
	withFlagged(s)
	s.aPassLater()
	writes := func() []request { return slices.DeleteFunc(touches(), func(r request) bool { return !r.writes() }) }
	s.Eventually(writes).ShouldNot(BeEmpty())
	written := writes()
	report := &v1alpha1.GuardStatus{}
	last := written[len(written)-1]
	var body struct {
		Data map[string]string `json:"data"`
	}
	s.Expect(yaml.Unmarshal([]byte(last.body), &body)).To(Succeed())
	s.Expect(yaml.UnmarshalStrict([]byte(body.Data[v1alpha1.ReportKey]), report)).To(Succeed())
	s.Expect(report.Gate.State).To(Equal(v1alpha1.GateLifted))
}

// servesSeeds makes the Shoot one that is a seed itself.
func (s *theShoot) servesSeeds() {
	s.gate.fails(always, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"APIGroup","apiVersion":"v1","name":"extensions.gardener.cloud"}`))
	}, func(r request) bool { return r.resource == seedGroup })
}

func TestManagedSeedIsOnlyReportedOn(t *testing.T) {
	s, g := newFlaggedShoot(t)
	s.enabled()
	s.Eventually(s.gateSays).Should(Equal("Lifted"))
	s.hibernates()
	s.servesSeeds()
	s.wakesUp()
	s.nodesJoin()
	s.Eventually(s.changed).Should(BeEmpty(), "what is on record is given back")
	s.Eventually(s.gateSays).Should(Equal("Closed NotGuarded"))
	s.Expect(s.findings()).To(ContainElement("ManagedSeed "))
	s.Expect(s.label("on-nodes")).To(BeEmpty())
	s.Expect(g.hibernationPossible()).To(HavePrefix("False"))
	s.gate.forget()
	s.flowBegins(true)
	s.call()
	s.Expect(s.writes()).To(BeEmpty())
}

func TestShootThatMayBeASeedIsOpenedInACallOnly(t *testing.T) {
	s, _ := newFlaggedShoot(t)
	s.gate.fails(always, wrong["500"], func(r request) bool { return r.resource == seedGroup })
	s.enabled()
	s.Eventually(s.gateSays).Should(Equal("Closed ClaimFailed"))
	s.Expect(s.writes()).To(BeEmpty())
	s.flowBegins(true)
	s.call()
	s.Expect(s.standing()).To(HaveKeyWithValue("on-nodes/nodes", "Ignore 3s"))
	s.validating("late", hookOf{name: "late", policy: "Fail", timeout: 10})
	s.nodesGo()
	s.aPassLater()
	s.Expect(s.standing()).To(HaveKeyWithValue("late/late", "Fail 10s"))
	s.gate.mend()
	s.Eventually(s.standing).Should(HaveKeyWithValue("late/late", "Ignore 3s"))
}

func TestExtensionOfTheOperatorClaimsOnlyInShootsThatMayHibernate(t *testing.T) {
	s, g := newFlaggedShoot(t)
	s.sync(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Hibernation = nil })
	s.asked()
	s.Eventually(s.gateSays).Should(Equal("Closed ConstraintLeft"))
	s.Expect(s.writes()).To(BeEmpty())
	s.sync(func(shoot *gardencorev1beta1.Shoot) {
		shoot.Spec.Extensions = []gardencorev1beta1.Extension{{Type: v1alpha1.ExtensionType}}
	})
	s.aPassLater()
	s.Eventually(g.hibernationPossible).Should(HavePrefix("True"), "the owner enabled it")
	s.sync(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Extensions = nil })
	s.aPassLater()
	s.Eventually(g.hibernationPossible).Should(HavePrefix("False"))
	s.sync(func(shoot *gardencorev1beta1.Shoot) {
		shoot.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(false)}
	})
	s.aPassLater()
	s.Eventually(g.hibernationPossible).Should(HavePrefix("True"))
}

func TestIgnoredShootIsNotLabelled(t *testing.T) {
	s, _ := newFlaggedShoot(t)
	s.sync(ignored)
	s.asked()
	s.Eventually(s.gateSays).Should(Equal("Closed ClaimFailed"))
	s.Expect(s.touched()).To(BeEmpty())
}

// Whatever an admin of the Shoot writes onto objects, what gardener-resource-manager applies is never changed.
func TestGardenersOwnIsNeverChangedWhateverIsForged(t *testing.T) {
	s, g := newFlaggedShoot(t)
	s.enabled()
	s.Eventually(s.claimed).Should(ConsistOf("on-nodes"))
	own := s.newValidating("gardeners", hookOf{name: "nodes", policy: "Fail", timeout: 10, resource: "nodes"})
	own.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"))
	s.manages(own)
	applies := g.applies()
	apply := func() {
		_, err := applies.Reconcile(s.ctx, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: s.name, Name: "it"}})
		s.Expect(err).NotTo(HaveOccurred())
	}
	apply()
	s.t.Cleanup(func() { _ = s.shoot().Delete(t.Context(), own) })
	s.Expect(s.read("gardeners").Annotations).To(HaveKey(resourcesv1alpha1.OriginAnnotation))
	for name, forge := range map[string]func(*admissionregistrationv1.ValidatingWebhookConfiguration){
		"nothing":  func(*admissionregistrationv1.ValidatingWebhookConfiguration) {},
		"no label": func(o *admissionregistrationv1.ValidatingWebhookConfiguration) { delete(o.Labels, v1alpha1.ClaimLabel) },
		"Kyverno's label": func(o *admissionregistrationv1.ValidatingWebhookConfiguration) {
			o.Labels[pkggate.KyvernoLabel] = pkggate.KyvernoName
		},
		"our annotation": func(o *admissionregistrationv1.ValidatingWebhookConfiguration) {
			o.Annotations[v1alpha1.OriginalsAnnotation] = `{"hooks":{"nodes.hooks.example.com":{"failurePolicy":"Ignore","timeoutSeconds":1}}}`
		},
	} {
		forged := s.read("gardeners")
		forge(forged)
		s.Expect(s.shoot().Update(s.ctx, forged, client.FieldOwner(v1alpha1.ClaimFieldManager))).To(Succeed())
		s.gate.forget()
		s.aPassLater()
		s.flowBegins(true)
		s.call()
		s.flowBegins(false)
		s.aPassLater()
		s.flowEnds()
		s.Expect(s.gate.seen(func(r request) bool { return isPatch(r) && r.name == s.full("gardeners") })).To(BeEmpty(), name)
		apply()
	}
}

// manages makes a ManagedResource with one object on the seed.
func (s *theShoot) manages(object client.Object) {
	content, err := yaml.Marshal(object)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(managedresources.Create(s.ctx, s.seed(), s.name, "it", nil, false, "", map[string][]byte{"own.yaml": content}, nil, nil, nil)).To(Succeed())
	s.t.Cleanup(func() {
		resource := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "it"}}
		if s.seed().Get(context.Background(), client.ObjectKeyFromObject(resource), resource) == nil {
			resource.Finalizers = nil
			_ = s.seed().Update(context.Background(), resource)
		}
	})
}
