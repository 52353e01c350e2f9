// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	extensionsconfigv1alpha1 "github.com/gardener/gardener/extensions/pkg/apis/config/v1alpha1"
	extensioncontroller "github.com/gardener/gardener/extensions/pkg/controller/extension"
	"github.com/gardener/gardener/extensions/pkg/util"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/extensions"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

// Gardener's code says some things to the process-wide logger only.
func init() { logf.SetLogger(logr.Discard()) }

// answering is an extension that does nothing but answer, through Gardener's generic extension library.
type answering struct {
	client client.Client
	mu     sync.Mutex
	calls  []string
	fail   func(call string) error
}

func (a *answering) answer(call string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, call)
	if a.fail != nil {
		return a.fail(call)
	}
	return nil
}

// taken returns the calls since the last time. The library may repeat one: on a conflict, and when it sees its own writes.
func (a *answering) taken() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	calls := a.calls
	a.calls = nil
	return calls
}

func (a *answering) failWith(fail func(call string) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fail = fail
}

// Reconcile keeps the number of reconciles in status.state.
func (a *answering) Reconcile(ctx context.Context, _ logr.Logger, ex *extensionsv1alpha1.Extension) error {
	if err := a.answer("reconcile"); err != nil {
		return err
	}
	patch := client.MergeFrom(ex.DeepCopy())
	if ex.Status.State == nil {
		ex.Status.State = &runtime.RawExtension{Raw: []byte(`{"cycle":"first"}`)}
	}
	return a.client.Status().Patch(ctx, ex, patch)
}

func (a *answering) Restore(_ context.Context, _ logr.Logger, ex *extensionsv1alpha1.Extension) error {
	if ex.Status.State == nil {
		return a.answer("restore without state")
	}
	return a.answer("restore " + string(ex.Status.State.Raw))
}

func (a *answering) Delete(context.Context, logr.Logger, *extensionsv1alpha1.Extension) error {
	return a.answer("delete")
}

func (a *answering) ForceDelete(context.Context, logr.Logger, *extensionsv1alpha1.Extension) error {
	return a.answer("force-delete")
}

func (a *answering) Migrate(context.Context, logr.Logger, *extensionsv1alpha1.Extension) error {
	return a.answer("migrate")
}

// stage is a bench, a Gardenlet and an extension.
type stage struct {
	*WithT
	ctx       context.Context
	bench     *bench.Bench
	gardenlet *bench.Gardenlet
	extension *answering
	mu        sync.Mutex
	steps     []bench.Step // ended
}

func newStage(t *testing.T, o bench.GardenletOptions) *stage {
	t.Helper()
	s := &stage{WithT: NewWithT(t)}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	s.ctx = ctx
	begin := time.Now()
	var err error
	s.bench, err = bench.New(ctx, bench.Options{DrainTimeout: 5 * time.Second, VMDeletion: time.Second})
	s.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		cancel()
		NewWithT(t).Expect(s.bench.Close()).To(Succeed())
	})
	t.Logf("bench ready after %s", time.Since(begin).Round(time.Millisecond))
	s.startExtension(t)
	o.Extension = true
	o.OnStep = func(step bench.Step) {
		if step.Ended.IsZero() {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.steps = append(s.steps, step)
		t.Logf("%s +%-6s %s %v", step.Begun.Format("05.000"), step.Ended.Sub(step.Begun).Round(time.Millisecond), step.Name, step.Err)
	}
	s.gardenlet = bench.NewGardenlet(s.bench, o)
	t.Cleanup(s.gardenlet.Close)
	return s
}

func (s *stage) startExtension(t *testing.T) {
	mgr, err := manager.New(s.bench.Seed.ConfigFor("extension", "system:masters"), manager.Options{
		Scheme: kubernetes.SeedScheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, Logger: logr.Discard(),
	})
	s.Expect(err).NotTo(HaveOccurred())
	s.extension = &answering{client: mgr.GetClient()}
	s.Expect(extensioncontroller.Add(mgr, extensioncontroller.AddArgs{
		Actuator: s.extension, Name: "answering", FinalizerSuffix: "answering", Type: bench.ExtensionType,
		ControllerOptions: controller.Options{}, Predicates: extensioncontroller.DefaultPredicates(s.ctx, mgr, false),
		ExtensionClasses: []extensionsv1alpha1.ExtensionClass{extensionsv1alpha1.ExtensionClassShoot},
	})).To(Succeed())
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(s.ctx)
	running.Go(func() { _ = mgr.Start(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
}

// timed does what a test is about and says how long it took.
func (s *stage) timed(t *testing.T, what string, do func(context.Context) error) {
	t.Helper()
	begin := time.Now()
	s.Expect(do(s.ctx)).To(Succeed(), what)
	t.Logf("== %s took %s", what, time.Since(begin).Round(100*time.Millisecond))
}

// index is where a step ended last, -1 if it was never done.
func (s *stage) index(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.steps) - 1; i >= 0; i-- {
		if s.steps[i].Name == name {
			return i
		}
	}
	return -1
}

func (s *stage) forgetSteps() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = nil
}

func (s *stage) cluster() *gardencorev1beta1.Shoot {
	cluster, err := extensions.GetCluster(s.ctx, s.bench.Seed.Client(), s.bench.Namespace)
	s.Expect(err).NotTo(HaveOccurred())
	return cluster.Shoot
}

func (s *stage) replicas(name string) (spec, ready int32) {
	deployment := deployment(name, s.bench.Namespace)
	s.Expect(s.bench.Seed.Client().Get(s.ctx, client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
	return *deployment.Spec.Replicas, deployment.Status.ReadyReplicas
}

func (s *stage) getExtension() (*extensionsv1alpha1.Extension, error) {
	extension := &extensionsv1alpha1.Extension{}
	err := s.bench.Seed.Client().Get(s.ctx, client.ObjectKey{Namespace: s.bench.Namespace, Name: bench.ExtensionType}, extension)
	return extension, err
}

// connect makes the client an extension would use.
func (s *stage) connect() (client.Client, error) {
	_, c, err := util.NewClientForShoot(s.ctx, s.bench.Seed.Client(), s.bench.Namespace, client.Options{}, extensionsconfigv1alpha1.RESTOptions{})
	return c, err
}

// user is who the API server takes that client for.
func (s *stage) user(c client.Client) string {
	review := &authenticationv1.SelfSubjectReview{}
	s.Expect(c.Create(s.ctx, review)).To(Succeed())
	return review.Status.UserInfo.Username
}

func deployment(name, namespace string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
}

func ignore(shoot *gardencorev1beta1.Shoot) {
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, v1beta1constants.ShootIgnore, "true")
}

func enableHibernation(shoot *gardencorev1beta1.Shoot)  { shoot.Spec.Hibernation.Enabled = new(true) }
func disableHibernation(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Hibernation.Enabled = new(false) }

func (s *stage) expectAwake() {
	shoot := s.cluster()
	s.Expect(shoot.Status.LastOperation.State).To(Equal(gardencorev1beta1.LastOperationStateSucceeded))
	s.Expect(shoot.Status.IsHibernated).To(BeFalse())
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "gardener-resource-manager"} {
		s.Eventually(func() string { return fmt.Sprint(s.replicas(name)) }).WithTimeout(10*time.Second).Should(Equal("1 1"), name)
	}
	c, err := s.connect()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.user(c)).To(Equal("system:serviceaccount:kube-system:gardener-internal"))
	nodes := &corev1.NodeList{}
	s.Expect(c.List(s.ctx, nodes)).To(Succeed())
	s.Expect(nodes.Items).To(HaveLen(1))
	s.Expect(nodes.Items[0].Spec.Unschedulable).To(BeFalse())
}

func (s *stage) expectAsleep() {
	shoot := s.cluster()
	s.Expect(shoot.Status.LastOperation.State).To(Equal(gardencorev1beta1.LastOperationStateSucceeded))
	s.Expect(shoot.Status.IsHibernated).To(BeTrue())
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "gardener-resource-manager"} {
		s.Expect(fmt.Sprint(s.replicas(name))).To(Equal("0 0"), name)
	}
	s.Expect(s.bench.Shoot.Running()).To(BeFalse())
	s.Expect(s.bench.Machines.Nodes()).To(BeEmpty())
}

func (s *stage) expectNothingOnSeed() {
	_, err := s.getExtension()
	s.Expect(apierrors.IsNotFound(err)).To(BeTrue())
	_, err = extensions.GetCluster(s.ctx, s.bench.Seed.Client(), s.bench.Namespace)
	s.Expect(apierrors.IsNotFound(err)).To(BeTrue())
	err = s.bench.Seed.Client().Get(s.ctx, client.ObjectKey{Name: s.bench.Namespace}, &corev1.Namespace{})
	s.Expect(apierrors.IsNotFound(err)).To(BeTrue())
}
