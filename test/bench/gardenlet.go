// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/client/kubernetes/clientmap"
)

// ErrStopped is what a flow ends with after StopAfter: gardenlet is gone in the middle of it, the Shoot's status says
// Processing, and no step that had not begun will be done.
var ErrStopped = errors.New("gardenlet was stopped")

// GardenletOptions of a Gardenlet. The zero value is usable.
type GardenletOptions struct {
	// Log takes what Gardener's own code logs. The zero Logger discards.
	Log logr.Logger
	// Extension puts the extension into the Shoot's spec.extensions.
	Extension bool
	// ProviderConfig is the extension's providerConfig, if Extension is set.
	ProviderConfig *runtime.RawExtension
	// Registration is the extension's ControllerRegistration: lifecycle, time-out, auto-enable. Default: one with
	// Gardener's defaults for all of them.
	Registration *gardencorev1beta1.ControllerRegistration
	// Garden is where the Shoot is kept; it must have been created there with CreateShoot and the same options. nil: in memory,
	// where everything is accepted.
	Garden *Garden
	// Nodes is how many machines an awake Shoot has. Default: 1.
	Nodes int
	// FailAt and StopAfter are for the first flow that has the step; see the methods of the same names.
	FailAt, StopAfter string
	// OnStep is told when a step begins (Ended is zero) and when it has ended. Steps that do not depend on each other
	// run in parallel, as in gardenlet; OnStep is called for one at a time.
	OnStep func(Step)
}

// Step is one task of a flow, by gardenlet's own name for it.
type Step struct {
	// Flow is the name of the flow the step is part of.
	Flow, Name string
	// Begun is when the step began, Ended when it had ended; zero while it runs.
	Begun, Ended time.Time
	// Err is why the step failed.
	Err error
}

// Gardenlet does to the bench's Shoot what gardenlet does: it keeps the Shoot of an imaginary or real garden, syncs the
// Cluster, and runs the flows of Gardener v1.149.3 with Gardener's own code and in its order. What Gardener does on
// the seed beside gardenlet is done here as well: Deployments in the Shoot's namespace become processes,
// and gardener-resource-manager fills in tokens and applies ManagedResources.
// All methods may be called from any goroutine; flows take turns. Close ends it.
type Gardenlet struct {
	bench   *Bench
	options GardenletOptions
	log     logr.Logger

	garden  client.Client
	edits   sync.Mutex // held while the Shoot in the garden is changed
	flows   sync.Mutex // held during a flow
	workers *gardenletWorkers

	// Made by the first flow, under flows.
	seed         kubernetes.Interface
	shootClients clientmap.ClientMap
	stop         context.CancelFunc
	background   sync.WaitGroup
	closed       bool

	mu                sync.Mutex // guards what follows
	failAt, stopAfter string
	telling           sync.Mutex // held during OnStep
}

// NewGardenlet makes a Gardenlet for the bench's Shoot. Until its first flow nothing is written to the seed.
func NewGardenlet(b *Bench, o GardenletOptions) *Gardenlet {
	if o.Log.GetSink() == nil {
		// A logger without a sink makes Gardener's code look for the process-wide one.
		o.Log = funcr.New(func(string, string) {}, funcr.Options{})
	}
	if o.Nodes == 0 {
		o.Nodes = 1
	}
	g := &Gardenlet{bench: b, options: o, log: o.Log, failAt: o.FailAt, stopAfter: o.StopAfter}
	if o.Garden != nil {
		g.garden = o.Garden.Client()
	} else {
		g.garden = newGarden(b, o)
	}
	g.workers = &gardenletWorkers{machines: b.Machines, log: o.Log}
	return g
}

// Close waits for a running flow and ends what the Gardenlet runs in the background. It leaves the control planes as
// they are. It is to be called before the bench is closed, and may be called more than once.
func (g *Gardenlet) Close() {
	g.flows.Lock()
	defer g.flows.Unlock()
	g.closed = true
	if g.stop != nil {
		g.stop()
	}
	g.workers.close()
	g.background.Wait()
}

// FailAt makes the next flow that has this step fail at it, once, with an error that gardenlet retries; the step is
// not done. A flow that does not have the step, or skips it, refuses to start.
func (g *Gardenlet) FailAt(step string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failAt = step
}

// StopAfter makes the next flow end with ErrStopped after this step, once, as if gardenlet had been killed. A flow that
// does not have the step, or skips it, refuses to start.
func (g *Gardenlet) StopAfter(step string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopAfter = step
}

// Hibernate sets hibernation.enabled and reconciles until that succeeds.
// Like gardenlet's queue it retries failed flows after 5 ms, 10 ms, 20 ms … It gives up when the Shoot is Failed, when
// a flow was stopped, or when ctx ends; the error is that of the last flow.
func (g *Gardenlet) Hibernate(ctx context.Context) error {
	if err := g.TryEdit(func(shoot *gardencorev1beta1.Shoot) { setHibernation(shoot, true) }); err != nil {
		return err
	}
	return g.untilDone(ctx, g.Reconcile)
}

// WakeUp unsets hibernation.enabled and reconciles until that succeeds, as Hibernate does.
func (g *Gardenlet) WakeUp(ctx context.Context) error {
	if err := g.TryEdit(func(shoot *gardencorev1beta1.Shoot) { setHibernation(shoot, false) }); err != nil {
		return err
	}
	return g.untilDone(ctx, g.Reconcile)
}

// Delete deletes the Shoot and reconciles until it is gone, as Hibernate does.
func (g *Gardenlet) Delete(ctx context.Context) error {
	if err := g.deleteShoot(ctx); err != nil {
		return err
	}
	return g.untilDone(ctx, g.Reconcile)
}

// ForceDelete deletes the Shoot by force and reconciles until it is gone, as Hibernate does. The machines are left
// alone, as Gardener does it.
func (g *Gardenlet) ForceDelete(ctx context.Context) error {
	if err := g.deleteShoot(ctx); err != nil {
		return err
	}
	g.Edit(confirmForceDeletion)
	return g.untilDone(ctx, g.Reconcile)
}

// Migrate prepares the Shoot for another seed and reconciles until that succeeds, as Hibernate does. The control plane
// is gone afterwards, its data and the machines are not. The result is what gardenlet wrote into the ShootState.
func (g *Gardenlet) Migrate(ctx context.Context) (*gardencorev1beta1.ShootState, error) {
	g.Edit(chooseOtherSeed)
	if err := g.untilDone(ctx, g.Reconcile); err != nil {
		return nil, err
	}
	state := &gardencorev1beta1.ShootState{}
	if err := g.garden.Get(ctx, shootKey, state); err != nil {
		return nil, fmt.Errorf("failed to get ShootState: %w", err)
	}
	return state, nil
}

// Restore brings the control plane back after Migrate, on the same seed, and reconciles until that succeeds, as
// Hibernate does. The extension gets its status.state from this ShootState; nil: the one Migrate left.
func (g *Gardenlet) Restore(ctx context.Context, state *gardencorev1beta1.ShootState) error {
	if state != nil {
		if err := g.putShootState(ctx, state); err != nil {
			return err
		}
	}
	return g.untilDone(ctx, g.Reconcile)
}

// RotateCredentials gives the Shoot a new authority, new certificates and a new key for tokens. The API server takes
// them at its next start, so the Shoot should sleep. The kubeconfig secrets trust the new authority from the next flow
// on, and get new tokens once the API server and gardener-resource-manager run, as with Gardener.
func (g *Gardenlet) RotateCredentials(ctx context.Context) error {
	return g.bench.Shoot.RotateCertificates(ctx)
}

// untilDone runs flows until one succeeds.
func (g *Gardenlet) untilDone(ctx context.Context, flow func(context.Context) error) error {
	// The default of controller-runtime, which gardenlet's shoot controller leaves as it is.
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](5*time.Millisecond, 1000*time.Second)
	for {
		err := flow(ctx)
		if shoot := g.Shoot(); shoot != nil && isFailed(shoot) {
			return errors.Join(fmt.Errorf("shoot is Failed: %s", shoot.Status.LastOperation.Description), err)
		}
		if err == nil || errors.Is(err, ErrStopped) || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(limiter.When("")):
		}
	}
}
