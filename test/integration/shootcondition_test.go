// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	"github.com/gardener/gardener/pkg/apis/core"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	fakekubernetes "github.com/gardener/gardener/pkg/client/kubernetes/fake"
	"github.com/gardener/gardener/pkg/extensions"
	"github.com/gardener/gardener/pkg/gardenlet/controller/shoot/care"
	"github.com/gardener/gardener/pkg/gardenlet/features"
	"github.com/gardener/gardener/pkg/gardenlet/operation/seed"
	"github.com/gardener/gardener/pkg/gardenlet/operation/shoot"
	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

const (
	careSeed = "seed"
	// staleAfter is gardenlet's default for a heartbeat.
	staleAfter = 5 * time.Minute
)

var registerFeatures = sync.OnceFunc(features.RegisterFeatureGates)

// carer is gardenlet's health check of one Shoot. It sees the Extension as it stands on the seed; its own memory is the Shoot's
// status, as in the garden.
type carer struct {
	*theShoot
	status     []gardencorev1beta1.Condition
	thresholds map[gardencorev1beta1.ConditionType]time.Duration
	// heartbeat is when the extension's controller renewed its lease last; zero: there is no lease.
	heartbeat time.Time
	// without lets the Extension have no conditions.
	without bool
}

func (s *theShoot) carer() *carer {
	registerFeatures()
	return &carer{theShoot: s, heartbeat: time.Now()}
}

// cares runs the check once and returns the conditions that the Shoot has then.
func (c *carer) cares() []gardencorev1beta1.Condition {
	c.t.Helper()
	info := c.info.DeepCopy()
	info.Spec.Provider.Workers = []gardencorev1beta1.Worker{{Name: "worker", Minimum: 1, Maximum: 1}}
	info.Status.Conditions = c.status
	if last := info.Status.LastOperation; last.State == gardencorev1beta1.LastOperationStateSucceeded {
		last.LastUpdateTime = metav1.NewTime(time.Now().Add(-time.Hour)) // after a success gardenlet is patient as long as the thresholds say
	}
	sh := &shoot.Shoot{ControlPlaneNamespace: c.name, HibernationEnabled: *info.Spec.Hibernation.Enabled}
	sh.SetInfo(info)
	its := &seed.Seed{}
	its.SetInfo(&gardencorev1beta1.Seed{})
	config := &gardenletconfigv1alpha1.GardenletConfiguration{SeedConfig: &gardenletconfigv1alpha1.SeedConfig{}}
	config.SeedConfig.Name = careSeed
	conditions := care.NewShootConditions(clock.RealClock{}, info)
	health := care.NewHealth(logr.Discard(), sh, its, c.seedOfCare(), c.gardenOfCare(), c.connectCare, clock.RealClock{}, config, c.thresholds).
		Check(c.ctx, &metav1.Duration{Duration: staleAfter}, conditions)
	c.status = v1beta1helper.BuildConditions(info.Status.Conditions, health, conditions.ConditionTypes())
	return c.status
}

// components is what the Shoot says of its system components after a check.
func (c *carer) components() gardencorev1beta1.Condition {
	c.t.Helper()
	condition := v1beta1helper.GetCondition(c.cares(), gardencorev1beta1.ShootSystemComponentsHealthy)
	c.Expect(condition).NotTo(BeNil())
	return *condition
}

// others are all other conditions after a check, without times.
func (c *carer) others() []gardencorev1beta1.Condition {
	var out []gardencorev1beta1.Condition
	for _, condition := range c.cares() {
		if condition.Type != gardencorev1beta1.ShootSystemComponentsHealthy {
			condition.LastTransitionTime, condition.LastUpdateTime = metav1.Time{}, metav1.Time{}
			out = append(out, condition)
		}
	}
	return out
}

// own is the Extension's own condition.
func (c *carer) own() gardencorev1beta1.Condition {
	condition := v1beta1helper.GetCondition(c.lookup().Status.Conditions, gardencorev1beta1.ShootSystemComponentsHealthy)
	c.Expect(condition).NotTo(BeNil())
	return *condition
}

func newInstallation() *gardencorev1beta1.ControllerInstallation {
	return &gardencorev1beta1.ControllerInstallation{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ExtensionType},
		Spec: gardencorev1beta1.ControllerInstallationSpec{
			RegistrationRef: corev1.ObjectReference{Name: v1alpha1.ExtensionType}, SeedRef: &corev1.ObjectReference{Name: careSeed},
		},
	}
}

func (c *carer) seedOfCare() kubernetes.Interface {
	ex := c.lookup().DeepCopy()
	if c.without {
		ex.Status.Conditions = nil
	}
	objects := []client.Object{ex}
	if !c.heartbeat.IsZero() {
		renewed := metav1.NewMicroTime(c.heartbeat)
		objects = append(objects, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: gardenerutils.NamespaceNameForControllerInstallation(newInstallation()), Name: extensions.HeartBeatResourceName,
			},
			Spec: coordinationv1.LeaseSpec{RenewTime: &renewed},
		})
	}
	return fakekubernetes.NewClientSetBuilder().
		WithClient(fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithObjects(objects...).Build()).Build()
}

func (c *carer) gardenOfCare() client.Client {
	registration := &gardencorev1beta1.ControllerRegistration{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ExtensionType},
		Spec: gardencorev1beta1.ControllerRegistrationSpec{Resources: []gardencorev1beta1.ControllerResource{{
			Kind: extensionsv1alpha1.ExtensionResource, Type: v1alpha1.ExtensionType,
		}}},
	}
	return fake.NewClientBuilder().WithScheme(kubernetes.GardenScheme).WithObjects(registration, newInstallation()).
		WithIndex(&gardencorev1beta1.ControllerInstallation{}, core.SeedRefName, func(object client.Object) []string {
			return []string{object.(*gardencorev1beta1.ControllerInstallation).Spec.SeedRef.Name}
		}).Build()
}

func (c *carer) connectCare() (kubernetes.Interface, bool, error) {
	set, err := kubernetes.NewWithConfig(kubernetes.WithRESTConfig(servers.Shoot.ConfigFor("gardenlet", "system:masters")),
		kubernetes.WithClientOptions(client.Options{Scheme: kubernetes.ShootScheme}), kubernetes.WithDisabledCachedClient())
	return set, err == nil, err
}

// anotherCheckFails is what gardenlet says as long as no extension has something to say: the Shoot has no tunnel.
const anotherCheckFails = "NoTunnelDeployed"

func TestConditionArrivesInTheShoot(t *testing.T) {
	s := newShoot(t, withConfig(quick+oneMinute))
	s.service("dead")
	s.comesBack("dead")
	s.validating("dead", hookOf{name: "dead", policy: "Fail", timeout: 10, backend: "dead"})
	c := s.carer()
	c.without = true
	before := c.others()
	c.without = false
	s.Expect(before).NotTo(BeEmpty())
	s.Expect(c.own().Status).To(Equal(gardencorev1beta1.ConditionTrue))
	s.Expect(c.components().Reason).To(Equal(anotherCheckFails), "a good condition leaves no trace and hides nothing")

	s.flowBegins(true)
	s.call()
	s.nodesGo()
	s.Eventually(s.condition).Should(HavePrefix("Progressing WebhooksOpening"))
	c.notChecked("on its way to sleep")
	s.apiServerStops()
	s.Eventually(s.condition).Should(HavePrefix("True ShootAsleep"))
	s.flowEnds()
	c.notChecked("asleep")

	s.wakesUp()
	c.notChecked("until the wake-up has succeeded")
	s.nodesJoin()
	s.Eventually(func() any { return s.state().Cycle.FirstReadyNode }).ShouldNot(BeNil())
	s.Eventually(s.standing).Should(Equal(with(own, "dead/dead", "Ignore 3s")))
	s.Eventually(s.condition).Should(And(HavePrefix("Progressing WebhooksFailOpen"), ContainSubstring("1 webhook is")))
	seen := c.components()
	s.Expect(seen.Status).To(Equal(gardencorev1beta1.ConditionProgressing))
	s.Expect(seen.Reason).To(Equal("ExtensionWebhooksFailOpen"))
	s.Expect(seen.Message).To(Equal(c.own().Message))
	s.Expect(seen.Codes).To(BeEmpty())

	s.later(2 * time.Minute)
	s.Eventually(s.condition).Should(HavePrefix("False WebhooksStillFailOpen"))
	c.failing()
	s.Expect(c.others()).To(Equal(before), "no other condition is another one because of it")

	s.comesBack("dead")
	s.nudge()
	s.Eventually(s.condition).Should(HavePrefix("True WebhooksEnforced"))
	s.Expect(c.components().Reason).To(Equal(anotherCheckFails))
	s.Expect(c.components().Codes).To(BeEmpty())
}

// notChecked expects that gardenlet looks at nothing.
func (c *carer) notChecked(when string) {
	c.t.Helper()
	for _, condition := range c.cares() {
		c.Expect(condition.Status).To(Equal(gardencorev1beta1.ConditionTrue), when)
		c.Expect(condition.Reason).To(Equal("ConditionNotChecked"), when)
	}
}

// failing expects that the Extension's condition is seen as False, with its code, at once or after gardenlet's patience.
func (c *carer) failing() {
	c.t.Helper()
	want := c.own()
	patient := *c
	patient.thresholds = map[gardencorev1beta1.ConditionType]time.Duration{gardencorev1beta1.ShootSystemComponentsHealthy: time.Minute}
	c.Expect(patient.components().Status).To(Equal(gardencorev1beta1.ConditionProgressing), "as long as the threshold")

	seen := c.components()
	c.Expect(seen.Status).To(Equal(gardencorev1beta1.ConditionFalse))
	c.Expect(seen.Reason).To(Equal("ExtensionUnhealthyReport"))
	c.Expect(seen.Message).To(And(HavePrefix("Extension extension ("+c.name+"/"+v1alpha1.ExtensionType+")"), HaveSuffix(want.Message)))
	c.Expect(seen.Codes).To(ConsistOf(gardencorev1beta1.ErrorProblematicWebhook))
}

func TestControllerThatIsGoneShowsInTheShoot(t *testing.T) {
	s := newShoot(t)
	c := s.carer()
	for name, last := range map[string]time.Time{
		"its heartbeat is old": time.Now().Add(-staleAfter - time.Minute), "it never had one": {},
	} {
		c.heartbeat = last
		seen := c.components()
		s.Expect(seen.Status).To(Equal(gardencorev1beta1.ConditionUnknown), name)
		s.Expect(seen.Reason).To(Equal("ExtensionOutdatedHealthCheckReport"), name)
	}
	c.heartbeat = time.Now().Add(-staleAfter + time.Minute)
	s.Expect(c.components().Reason).To(Equal(anotherCheckFails), "a heartbeat may be some minutes old")
}
