// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/extensions"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/access"
	configv1alpha1 "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/config/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

// theShoot is the Shoot of one story.
type theShoot struct {
	*WithT
	t   *testing.T
	ctx context.Context

	// name is the technical namespace on the seed, that of the backends in the Shoot, and in front of all other names there.
	name  string
	gate  *gate
	clock *movableClock
	// info is the Shoot as the Cluster has it.
	info *gardencorev1beta1.Shoot
	// providerConfig of the extension.
	providerConfig string
	requestTimeout time.Duration
	// noFallback turns the fallback to Gardener's kubeconfig off.
	noFallback bool
	// constraint is what the operator of the landscape says about Gardener's constraint.
	constraint v1alpha1.ConstraintHandling

	before     bench.Snapshot
	askedAt    time.Time // when gardenlet called last
	controller *controller
	pods       map[string]int // generations of the backends' pods
}

type option func(*theShoot)

// withConfig sets the GuardConfig, without its header, in JSON.
func withConfig(fields string) option {
	return func(s *theShoot) { s.providerConfig = guardConfig(fields) }
}

func guardConfig(fields string) string {
	return `{"apiVersion":"hibernation-guard.extensions.gardener.cloud/v1alpha1","kind":"GuardConfig"` + fields + `}`
}

// quick is the stabilization time of most stories.
const quick = `,"stabilization":"1s"`

// tokenPatience is how long calls wait for a token.
const tokenPatience = 6 * time.Second

// withRequestTimeout sets the time-out of the controller's requests to the Shoot; in most stories it is 1 s.
func withRequestTimeout(timeout time.Duration) option {
	return func(s *theShoot) { s.requestTimeout = timeout }
}

// withoutFallback lets lifecycle calls not use Gardener's own kubeconfig.
func withoutFallback(s *theShoot) { s.noFallback = true }

var stories atomic.Int32

// newShoot begins a story that may run beside others: a Shoot that is awake, with a node, a Service "backend" that answers, and
// four hooks of which three are in scope. The extension is enabled and reconciled once. Everything is gone when the test ends.
func newShoot(t *testing.T, options ...option) *theShoot {
	t.Helper()
	s := newShootWithoutExtension(t, options...)
	s.flow(gardencorev1beta1.LastOperationTypeCreate, false)
	s.call()
	s.flowEnds()
	s.notTooSoon() // the library may have begun once more, before its cache showed that it is done
	s.caredFor()
	s.gate.forget()
	return s
}

// caredFor returns when the first care pass is over. The report for the Shoot's owner comes last: it is asked for, and written if
// no other story, all of which share it, has written the same.
func (s *theShoot) caredFor() {
	s.t.Helper()
	s.Eventually(func() bool {
		all := s.gate.seen(func(request) bool { return true })
		reported := slices.ContainsFunc(all, func(r request) bool { return r.name == v1alpha1.ReportName && r.code != 0 })
		return reported && time.Since(all[len(all)-1].at) > 500*time.Millisecond
	}).Should(BeTrue())
}

func newShootWithoutExtension(t *testing.T, options ...option) *theShoot {
	t.Helper()
	t.Parallel()
	s := &theShoot{
		WithT: NewWithT(t), t: t, name: fmt.Sprintf("shoot--it--%02d", stories.Add(1)), clock: &movableClock{},
		providerConfig: guardConfig(quick), requestTimeout: time.Second, constraint: v1alpha1.ConstraintLift, pods: map[string]int{},
	}
	for _, o := range options {
		o(s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	s.ctx = ctx
	t.Cleanup(cancel)
	s.makeGate()
	s.makeWorld()
	s.makeSeed()
	s.startController()
	s.before = s.snapshot()
	return s
}

func (s *theShoot) makeGate() {
	var err error
	s.gate, err = newGate(&rest.Config{
		Host: servers.Shoot.Host(), TLSClientConfig: rest.TLSClientConfig{CAData: servers.Shoot.CABundle()},
	}, shootLabel+"="+s.name)
	s.Expect(err).NotTo(HaveOccurred())
	s.t.Cleanup(s.gate.close)
}

// movableClock is the seed's clock, ahead of the real one by what a story says.
type movableClock struct {
	clock.RealClock
	ahead atomic.Int64
}

func (c *movableClock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Since is part of clock.PassiveClock.
func (c *movableClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// later lets time pass for the controller, and wakes it up.
func (s *theShoot) later(d time.Duration) {
	s.clock.ahead.Add(int64(d))
	s.nudge()
}

func (s *theShoot) seed() client.Client { return servers.Seed.Client() }

// makeSeed makes what gardenlet makes in the seed: the namespace, the kube-apiserver Deployment and the kubeconfig.
func (s *theShoot) makeSeed() {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: s.name, Labels: map[string]string{v1beta1constants.GardenRole: v1beta1constants.GardenRoleShoot},
	}}
	s.Expect(s.seed().Create(s.ctx, namespace)).To(Succeed())
	labels := map[string]string{"app": "kubernetes", "role": "apiserver"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: v1beta1constants.DeploymentNameKubeAPIServer},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "kube-apiserver", Image: "none"}}},
			},
		},
	}
	s.Expect(s.seed().Create(s.ctx, deployment)).To(Succeed())
	s.gardenersAccess()
	s.Expect(access.Ensure(s.ctx, s.seed(), s.name)).To(Succeed()) // as an earlier call has done
	s.tokens(v1beta1constants.SecretNameGardenerInternal, access.SecretName)
	s.info = &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-it", Name: "it", Generation: 1},
		Spec:       gardencorev1beta1.ShootSpec{Hibernation: &gardencorev1beta1.Hibernation{Enabled: new(false)}},
		Status:     gardencorev1beta1.ShootStatus{TechnicalID: s.name, ObservedGeneration: 1},
	}
	s.sync(func(*gardencorev1beta1.Shoot) {})
	ctx := context.WithoutCancel(s.ctx)
	s.t.Cleanup(func() { s.leaveSeed(ctx) })
}

// sync changes the Shoot and brings the Cluster up to date, as gardenlet does before a flow and after its success.
func (s *theShoot) sync(change func(*gardencorev1beta1.Shoot)) {
	change(s.info)
	s.Expect(extensions.SyncClusterResourceToSeed(s.ctx, s.seed(), s.name, s.info, &gardencorev1beta1.CloudProfile{}, nil)).To(Succeed())
}

// flow begins a flow that wants the Shoot hibernated or not.
func (s *theShoot) flow(operation gardencorev1beta1.LastOperationType, hibernate bool) {
	s.sync(func(shoot *gardencorev1beta1.Shoot) {
		shoot.Spec.Hibernation.Enabled = &hibernate
		shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{
			Type: operation, State: gardencorev1beta1.LastOperationStateProcessing, LastUpdateTime: metav1.Now(),
		}
	})
}

func (s *theShoot) flowBegins(hibernate bool) {
	s.flow(gardencorev1beta1.LastOperationTypeReconcile, hibernate)
}

func (s *theShoot) flowEnds() {
	s.sync(func(shoot *gardencorev1beta1.Shoot) {
		shoot.Status.LastOperation.State = gardencorev1beta1.LastOperationStateSucceeded
		shoot.Status.IsHibernated = *shoot.Spec.Hibernation.Enabled
	})
}

func (s *theShoot) flowFails() {
	s.sync(func(shoot *gardencorev1beta1.Shoot) {
		shoot.Status.LastOperation.State = gardencorev1beta1.LastOperationStateError
	})
}

// apiServerStops scales the Shoot's API server down; apiServerStarts up again.
func (s *theShoot) apiServerStops() {
	s.scaleAPIServer(0)
	s.gate.shut()
}

func (s *theShoot) apiServerStarts() {
	s.gate.open()
	s.scaleAPIServer(1)
}

func (s *theShoot) scaleAPIServer(replicas int32) {
	deployment := s.apiServer()
	patch := client.MergeFrom(deployment.DeepCopy())
	deployment.Spec.Replicas = &replicas
	s.Expect(s.seed().Patch(s.ctx, deployment, patch)).To(Succeed())
	patch = client.MergeFrom(deployment.DeepCopy())
	deployment.Status.Replicas, deployment.Status.ReadyReplicas = replicas, replicas
	s.Expect(s.seed().Status().Patch(s.ctx, deployment, patch)).To(Succeed())
}

func (s *theShoot) apiServer() *appsv1.Deployment {
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: s.name, Name: v1beta1constants.DeploymentNameKubeAPIServer}
	s.Expect(s.seed().Get(s.ctx, key, deployment)).To(Succeed())
	return deployment
}

// nudge makes the loop look at the Shoot now, by something that tells it nothing new.
func (s *theShoot) nudge() {
	deployment := s.apiServer()
	patch := client.MergeFrom(deployment.DeepCopy())
	deployment.Status.Replicas++
	deployment.Status.ReadyReplicas = deployment.Status.Replicas
	s.Expect(s.seed().Status().Patch(s.ctx, deployment, patch)).To(Succeed())
}

// aPassLater returns when the loop has looked at the Shoot, from its beginning to its end, after now.
func (s *theShoot) aPassLater() {
	s.t.Helper()
	begin := time.Now()
	looks := func() int {
		s.nudge()
		return len(s.gate.seen(func(r request) bool {
			return r.verb == "list" && r.resource == validatingResource && r.at.After(begin)
		}))
	}
	s.Eventually(looks).WithPolling(150*time.Millisecond).Should(BeNumerically(">=", 2), "passes of the loop")
}

// hibernates plays the whole hibernation: the flow begins, the extension is called, the nodes go, the API server stops, the flow
// ends.
func (s *theShoot) hibernates() {
	s.t.Helper()
	s.flowBegins(true)
	s.call()
	s.nodesGo()
	s.apiServerStops()
	s.Eventually(s.condition).Should(HavePrefix("True ShootAsleep"))
	s.flowEnds()
}

// wakesUp plays a wake-up up to the extension's answer: no node is there yet.
func (s *theShoot) wakesUp() {
	s.t.Helper()
	s.flowBegins(false)
	s.apiServerStarts()
	s.call()
}

// nodesJoin makes the rest of a wake-up: a node joins, the backend comes back, the flow ends.
func (s *theShoot) nodesJoin() {
	s.nodeJoins()
	s.comesBack("backend")
	s.flowEnds()
}

func (s *theShoot) leaveSeed(ctx context.Context) {
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}}, newCluster(s.name),
	} {
		NewWithT(s.t).Expect(client.IgnoreNotFound(s.seed().Delete(ctx, object))).To(Succeed())
	}
}

func rawOf(providerConfig string) *runtime.RawExtension {
	if providerConfig == "" {
		return nil
	}
	return &runtime.RawExtension{Raw: []byte(providerConfig)}
}

func (s *theShoot) controllerConfig() *configv1alpha1.ControllerConfiguration {
	config := &configv1alpha1.ControllerConfiguration{}
	configv1alpha1.SetObjectDefaults_ControllerConfiguration(config)
	config.ShootClient.Timeout = &metav1.Duration{Duration: s.requestTimeout}
	config.ShootClient.TokenPatience = &metav1.Duration{Duration: tokenPatience}
	*config.ShootClient.AdminFallback = !s.noFallback
	config.HibernationConstraint = &s.constraint
	return config
}
