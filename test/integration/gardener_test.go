// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	resourcemanagerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/resourcemanager/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	fakekubernetes "github.com/gardener/gardener/pkg/client/kubernetes/fake"
	"github.com/gardener/gardener/pkg/gardenlet/controller/shoot/care"
	"github.com/gardener/gardener/pkg/gardenlet/operation/shoot"
	resourcemanagerclient "github.com/gardener/gardener/pkg/resourcemanager/client"
	"github.com/gardener/gardener/pkg/resourcemanager/controller/managedresource"
	resourcemanagerpredicate "github.com/gardener/gardener/pkg/resourcemanager/predicate"
)

// gardener is Gardener's own view of the Shoot: its client sees what the Shoot's API server shows, and nobody counts its requests.
type gardener struct {
	*theShoot
	client client.Client
}

func (s *theShoot) gardener() gardener {
	own, err := newGate(servers.Shoot.ConfigFor("gardenlet", "system:masters"), shootLabel+"="+s.name)
	s.Expect(err).NotTo(HaveOccurred())
	s.t.Cleanup(own.close)
	config := servers.Shoot.ConfigFor("gardenlet", "system:masters")
	config.Host, config.TLSClientConfig.CAData, config.TLSClientConfig.CAFile = own.server.URL, own.certificate(), ""
	c, err := client.New(config, client.Options{Scheme: kubernetes.ShootScheme})
	s.Expect(err).NotTo(HaveOccurred())
	return gardener{s, c}
}

func (g gardener) connect() (kubernetes.Interface, bool, error) {
	return fakekubernetes.NewClientSetBuilder().WithClient(g.client).Build(), true, nil
}

// info is the Shoot, awake and reconciled.
func (g gardener) shootInfo() *gardencorev1beta1.Shoot {
	info := g.info.DeepCopy()
	info.Spec.Hibernation = nil
	info.Status.IsHibernated = false
	info.Status.LastOperation = &gardencorev1beta1.LastOperation{
		Type: gardencorev1beta1.LastOperationTypeReconcile, State: gardencorev1beta1.LastOperationStateSucceeded, LastUpdateTime: metav1.Now(),
	}
	return info
}

// constraint is what Gardener's own check says.
func (g gardener) constraint(constraint gardencorev1beta1.ConditionType) string {
	sh := &shoot.Shoot{ControlPlaneNamespace: g.name}
	info := g.shootInfo()
	sh.SetInfo(info)
	seed := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).Build()
	all := care.NewConstraint(logr.Discard(), sh, seed, g.connect, clock.RealClock{}).
		Check(g.ctx, care.NewShootConstraints(clock.RealClock{}, info))
	for _, c := range all {
		if c.Type == constraint {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return ""
}

func (g gardener) hibernationPossible() string {
	return g.constraint(gardencorev1beta1.ShootHibernationPossible)
}

// remediates lets Gardener's remediator work once.
func (g gardener) remediates() {
	g.Expect(care.NewWebhookRemediation(logr.Discard(), g.shootInfo(), g.connect).Remediate(g.ctx)).To(Succeed())
}

// applies is gardener-resource-manager's own reconciler, that brings one ManagedResource of the seed into the Shoot.
func (g gardener) applies() *managedresource.Reconciler {
	source, err := client.New(servers.Seed.ConfigFor("grm", "system:masters"), client.Options{Scheme: resourcemanagerclient.SourceScheme})
	g.Expect(err).NotTo(HaveOccurred())
	target, err := client.New(servers.Shoot.ConfigFor("grm", "system:masters"), client.Options{Scheme: resourcemanagerclient.TargetScheme})
	g.Expect(err).NotTo(HaveOccurred())
	var mapper meta.RESTMapper = target.RESTMapper()
	r := &managedresource.Reconciler{
		SourceClient: source, TargetClient: target, TargetScheme: resourcemanagerclient.TargetScheme, TargetRESTMapper: mapper,
		Clock: clock.RealClock{}, ClassFilter: resourcemanagerpredicate.NewClassFilter(resourcemanagerconfigv1alpha1.DefaultResourceClass),
		RequeueAfterOnDeletionPending: new(5 * time.Second),
	}
	r.Config.ManagedByLabelValue = new(resourcesv1alpha1.GardenerManager)
	r.Config.SyncPeriod = &metav1.Duration{Duration: time.Minute}
	return r
}
