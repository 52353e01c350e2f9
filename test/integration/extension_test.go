// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/component/extensions/extension"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/cmd/gardener-extension-shoot-hibernation-guard/app"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/codec"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

// controller is the product's controllers for one Shoot.
type controller struct {
	stop    context.CancelFunc
	stopped chan struct{}
}

// startController starts the product's controllers; they see of the seed only this Shoot.
func (s *theShoot) startController() {
	options, err := app.ManagerOptions(manager.Options{
		Logger: s.logger(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{s.name: {}}},
	})
	s.Expect(err).NotTo(HaveOccurred())
	for object, by := range options.Cache.ByObject {
		if _, isCluster := object.(*extensionsv1alpha1.Cluster); isCluster {
			by.Field = fields.OneTermEqualSelector("metadata.name", s.name)
			options.Cache.ByObject[object] = by
		}
	}
	mgr, err := manager.New(servers.Seed.ConfigFor(bench.ControllerUser, bench.ControllerGroups...), options)
	s.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	controllers := app.Controllers{Config: s.controllerConfig(), Clock: s.clock}
	s.Expect(controllers.AddToManager(ctx, mgr)).To(Succeed())
	c := &controller{stop: cancel, stopped: make(chan struct{})}
	go func() {
		defer close(c.stopped)
		if err := mgr.Start(ctx); err != nil {
			s.t.Errorf("the controller ended: %v", err)
		}
	}()
	s.controller = c
	s.t.Cleanup(c.end)
}

func (c *controller) end() {
	c.stop()
	<-c.stopped
}

// restartController ends the controllers and starts them again: what they kept in memory is lost.
func (s *theShoot) restartController() {
	s.controller.end()
	s.startController()
}

// logger keeps what the controllers say for a story that fails.
func (s *theShoot) logger() logr.Logger {
	var mu sync.Mutex
	var said bytes.Buffer
	s.t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		if s.t.Failed() {
			s.t.Logf("the controller of %s said:\n%s", s.name, said.String())
		}
	})
	return funcr.New(func(prefix, args string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(&said, time.Now().Format("15:04:05.000"), prefix, args)
	}, funcr.Options{Verbosity: 1})
}

// gardenlet is Gardener's own code for Extensions. Like the real one it takes an error for lasting only after a while.
func (s *theShoot) gardenlet(enabled bool) extension.Interface {
	wanted := map[string]extension.Extension{}
	if enabled {
		wanted[v1alpha1.ExtensionType] = extension.Extension{
			Extension: extensionsv1alpha1.Extension{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: v1alpha1.ExtensionType},
				Spec: extensionsv1alpha1.ExtensionSpec{DefaultSpec: extensionsv1alpha1.DefaultSpec{
					Type: v1alpha1.ExtensionType, ProviderConfig: rawOf(s.providerConfig),
				}},
			},
			Timeout: 30 * time.Second,
		}
	}
	return extension.New(logr.Discard(), s.seed(), &extension.Values{Namespace: s.name, Extensions: wanted},
		50*time.Millisecond, 20*time.Second, 30*time.Second)
}

// call is the lifecycle call of a flow: gardenlet asks for the extension and waits for its success. It returns how long.
func (s *theShoot) call() time.Duration {
	s.t.Helper()
	s.asked()
	begin := time.Now()
	s.Expect(s.gardenlet(true).WaitAfterKubeAPIServer(s.ctx)).To(Succeed())
	return time.Since(begin)
}

// asked is the first half of a call: gardenlet asks, and does not wait.
func (s *theShoot) asked() {
	s.t.Helper()
	s.notTooSoon()
	s.askedAt = time.Now()
	s.Expect(s.gardenlet(true).DeployAfterKubeAPIServer(s.ctx)).To(Succeed())
}

// succeeded says whether the last call was answered with success, at once or after the library tried again.
func (s *theShoot) succeeded() bool {
	ex := s.lookup()
	_, asked := ex.Annotations[v1beta1constants.GardenerOperation]
	last := ex.Status.LastOperation
	return !asked && ex.Status.LastError == nil && last.State == gardencorev1beta1.LastOperationStateSucceeded &&
		!last.LastUpdateTime.Time.Before(s.askedAt.Truncate(time.Second))
}

// notTooSoon waits until gardenlet can tell the next answer from the last one: times in answers are in whole seconds, and in
// practice two calls are never that close. The library may repeat a call that went well, too, as long as its cache is behind.
func (s *theShoot) notTooSoon() {
	s.Eventually(func() bool {
		ex := s.find()
		if ex == nil || ex.Status.LastOperation == nil {
			return true
		}
		last := ex.Status.LastOperation
		return (ex.Status.LastError != nil || last.State != gardencorev1beta1.LastOperationStateProcessing) &&
			time.Now().After(last.LastUpdateTime.Add(time.Second))
	}).Should(BeTrue())
}

// mayTake is how long a lifecycle call may take (design R9).
const mayTake = 20 * time.Second

// callFails is a lifecycle call that is answered with an error, and returns it.
func (s *theShoot) callFails() string {
	s.t.Helper()
	s.asked()
	begin, err := time.Parse(time.RFC3339Nano, s.lookup().Annotations[v1beta1constants.GardenerTimestamp])
	s.Expect(err).NotTo(HaveOccurred())
	var failed *gardencorev1beta1.LastError
	s.Eventually(func(g Gomega) {
		ex := s.lookup()
		failed = ex.Status.LastError
		g.Expect(ex.Annotations).NotTo(HaveKey(v1beta1constants.GardenerOperation))
		g.Expect(failed).NotTo(BeNil())
		g.Expect(failed.LastUpdateTime.Time).To(BeTemporally(">=", begin.Truncate(time.Second)))
	}).WithTimeout(mayTake).Should(Succeed())
	s.Expect(failed.Codes).To(BeEmpty(), "an error with a code may set the Shoot to Failed")
	return failed.Description
}

// disabled deletes the extension as gardenlet deletes one that the Shoot no longer wants; it does not wait.
func (s *theShoot) disabled() {
	s.Expect(s.gardenlet(false).DeleteStaleResources(s.ctx)).To(Succeed())
}

// find returns the Extension, or nil once it is gone.
func (s *theShoot) find() *extensionsv1alpha1.Extension {
	ex := &extensionsv1alpha1.Extension{}
	err := s.seed().Get(s.ctx, client.ObjectKey{Namespace: s.name, Name: v1alpha1.ExtensionType}, ex)
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.Expect(err).NotTo(HaveOccurred())
	return ex
}

func (s *theShoot) lookup() *extensionsv1alpha1.Extension {
	s.t.Helper()
	ex := s.find()
	s.Expect(ex).NotTo(BeNil(), "the Extension")
	return ex
}

// state is the record on the seed.
func (s *theShoot) state() *v1alpha1.GuardState {
	state, _, err := codec.DecodeState(s.lookup().Status.State)
	s.Expect(err).NotTo(HaveOccurred())
	return state
}

// recorded are the hooks on record with their originals, by short name.
func (s *theShoot) recorded() map[string]string {
	out := map[string]string{}
	for _, r := range s.state().Hooks {
		out[s.short(r.Configuration, r.Hook)] = fmt.Sprintf("%s %ds", r.Original.FailurePolicy, r.Original.TimeoutSeconds)
	}
	return out
}

// tamper changes the record on the seed, as nobody should.
func (s *theShoot) tamper(change func(state map[string]any)) {
	ex := s.lookup()
	patch := client.MergeFrom(ex.DeepCopy())
	state := map[string]any{}
	s.Expect(json.Unmarshal(ex.Status.State.Raw, &state)).To(Succeed())
	change(state)
	raw, err := json.Marshal(state)
	s.Expect(err).NotTo(HaveOccurred())
	ex.Status.State.Raw = raw
	s.Expect(s.seed().Status().Patch(s.ctx, ex, patch)).To(Succeed())
}

// loseRecord removes the record from the seed.
func (s *theShoot) loseRecord() {
	ex := s.lookup()
	patch := client.MergeFrom(ex.DeepCopy())
	ex.Status.State = nil
	s.Expect(s.seed().Status().Patch(s.ctx, ex, patch)).To(Succeed())
}

// condition is what the Extension says of itself.
func (s *theShoot) condition() string {
	for _, c := range s.lookup().Status.Conditions {
		if c.Type == gardencorev1beta1.ShootSystemComponentsHealthy {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return ""
}

// guardStatus is the Extension's report for machines.
func (s *theShoot) guardStatus() *v1alpha1.GuardStatus {
	status := &v1alpha1.GuardStatus{}
	if raw := s.lookup().Status.ProviderStatus; raw != nil {
		s.Expect(json.Unmarshal(raw.Raw, status)).To(Succeed())
	}
	return status
}

func newCluster(name string) *extensionsv1alpha1.Cluster {
	return &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// events are the reasons of the events on the Extension.
func (s *theShoot) events() []string {
	list := &eventsv1.EventList{}
	s.Expect(s.seed().List(s.ctx, list, client.InNamespace(s.name))).To(Succeed())
	var out []string
	for _, e := range list.Items {
		out = append(out, e.Reason)
	}
	return out
}

// shootState is what gardenlet carries to the next seed.
func (s *theShoot) shootState() *gardencorev1beta1.ShootState {
	name := v1alpha1.ExtensionType
	return &gardencorev1beta1.ShootState{Spec: gardencorev1beta1.ShootStateSpec{Extensions: []gardencorev1beta1.ExtensionResourceState{{
		Kind: extensionsv1alpha1.ExtensionResource, Name: &name, State: s.lookup().Status.State,
	}}}}
}

// restores is the lifecycle call of a restoration.
func (s *theShoot) restores(carried *gardencorev1beta1.ShootState) {
	s.t.Helper()
	let := s.gardenlet(true)
	s.notTooSoon()
	s.Expect(let.RestoreAfterKubeAPIServer(s.ctx, carried)).To(Succeed())
	s.Expect(let.WaitAfterKubeAPIServer(s.ctx)).To(Succeed())
}
