// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package bench runs a seed and a Shoot on real control planes, without containers: etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler as processes, a CONNECT tunnel in front of the Shoot's network, machines
// that come and go, pods that are Ready exactly when their process answers. Everything listens on loopback.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultNamespace is the Shoot's technical namespace on the seed unless Options say otherwise.
const DefaultNamespace = "shoot--bench--guard"

// Options of a Bench. The zero value is usable.
type Options struct {
	// Dir is where data, certificates and logs are kept. Default: a new temporary directory, which Close removes;
	// a directory that is given here stays.
	Dir string
	// Log takes one line per step. The zero Logger discards.
	Log logr.Logger
	// Namespace is the Shoot's technical namespace on the seed. Default: DefaultNamespace.
	Namespace string
	// SeedCRDs names the CRDs of the seed as `group_plural`, as the files in example/seed-crds of the gardener
	// module do. Default: DefaultSeedCRDs.
	SeedCRDs []string
	// Machines is how many machines the pool has at start. Default: 1; negative: none.
	Machines int
	// KeepProbeDelays makes the process kubelet wait for a readiness probe's initialDelaySeconds.
	KeepProbeDelays bool
	// DrainTimeout bounds the evictions before a machine goes. Default: 1 min, as machine-controller-manager v0.62.1
	// does it for machines that are deleted by force.
	DrainTimeout time.Duration
	// VMDeletion is how long a deleted machine goes on running after its drain while there are processes on it, or pods
	// whose end its kubelet could not tell yet. Default: 20 s, enough for a second try after one that a dead webhook held
	// for its 10 s; clouds take longer.
	VMDeletion time.Duration
	// NoStreamingLists turns off what API servers before Kubernetes 1.34 do not have: lists through a watch.
	NoStreamingLists bool
	// Kyverno installs Kyverno at start.
	Kyverno bool
	// KyvernoAll runs Kyverno's background, cleanup and reports controllers too; without it their pods stay Pending.
	KyvernoAll bool
}

// Bench is a running seed and Shoot.
type Bench struct {
	// Seed is the seed's control plane: etcd and kube-apiserver only.
	Seed *ControlPlane
	// Shoot is the Shoot's control plane, with kube-controller-manager and kube-scheduler.
	Shoot *ControlPlane
	// Tunnel is the only way of the Shoot's API server to its pods.
	Tunnel *Tunnel
	// Machines is the Shoot's only pool.
	Machines *Machines
	// Kyverno is nil until it is installed.
	Kyverno *Kyverno
	// Namespace is the Shoot's technical namespace on the seed; it exists.
	Namespace string
	// Dir is where data, certificates and logs are kept.
	Dir string
	// Log is the logger of Options.
	Log logr.Logger

	ports ports
	// resourceManager is run by a Gardenlet.
	resourceManager *resourceManager
	temporary       bool // Dir is ours
	left            bool // the uses of rights were written
	kyvernoAll      bool
	controllers     []*Controller
}

var discard = stdlog.New(io.Discard, "", 0)

// New starts a Bench and returns when both API servers, the tunnel and the machines work. It leaves nothing behind if
// it fails.
func New(ctx context.Context, o Options) (*Bench, error) {
	b := &Bench{Namespace: o.Namespace, Dir: o.Dir, Log: o.Log, kyvernoAll: o.KyvernoAll}
	begin := time.Now()
	if err := b.start(ctx, o.withDefaults()); err != nil {
		return nil, errors.Join(fmt.Errorf("failed to start bench: %w", err), b.Close())
	}
	b.Log.Info("Bench ready", "took", time.Since(begin).Round(time.Millisecond).String(), "dir", b.Dir)
	return b, nil
}

func (o Options) withDefaults() Options {
	if len(o.SeedCRDs) == 0 {
		o.SeedCRDs = DefaultSeedCRDs
	}
	if o.Machines == 0 {
		o.Machines = 1
	}
	if o.DrainTimeout == 0 {
		o.DrainTimeout = time.Minute
	}
	if o.VMDeletion == 0 {
		o.VMDeletion = 20 * time.Second
	}
	return o
}

// prepare makes all parts and starts none.
func (b *Bench) prepare(o Options) error {
	if b.Namespace == "" {
		b.Namespace = DefaultNamespace
	}
	if b.Log.GetSink() == nil {
		b.Log = logr.Discard()
	}
	if err := b.makeDir(); err != nil {
		return err
	}
	return b.makeParts(o)
}

func (b *Bench) start(ctx context.Context, o Options) error {
	if err := b.prepare(o); err != nil {
		return err
	}
	starts, startCtx := errgroup.WithContext(ctx)
	starts.Go(func() error { return b.startSeed(startCtx, o.SeedCRDs) })
	starts.Go(func() error { return b.startShoot(startCtx, o.Machines) })
	if err := starts.Wait(); err != nil {
		return err
	}
	if !o.Kyverno {
		return nil
	}
	_, err := b.InstallKyverno(ctx)
	return err
}

func (b *Bench) makeDir() error {
	var err error
	if b.Dir == "" {
		b.Dir, err = os.MkdirTemp("", "bench-")
		b.temporary = err == nil
	} else if b.Dir, err = filepath.Abs(b.Dir); err == nil {
		err = os.MkdirAll(b.Dir, 0o755)
	}
	if err != nil {
		return fmt.Errorf("failed to create directory: %w", err)
	}
	return nil
}

func (b *Bench) makeParts(o Options) error {
	port, err := b.ports.take()
	if err != nil {
		return err
	}
	var way *egress
	if b.Tunnel, way, err = newTunnel(port, b.Log); err != nil {
		return err
	}
	if b.Seed, err = newControlPlane("seed", filepath.Join(b.Dir, "seed"), b.Log, kubernetes.SeedScheme, &b.ports, nil); err != nil {
		return err
	}
	if b.Shoot, err = newControlPlane("shoot", filepath.Join(b.Dir, "shoot"), b.Log, kubernetes.ShootScheme, &b.ports, way); err != nil {
		return err
	}
	b.Seed.noStreamingLists, b.Shoot.noStreamingLists = o.NoStreamingLists, o.NoStreamingLists
	if b.resourceManager, err = newResourceManager(b); err != nil {
		return err
	}
	b.Machines = newMachines(b, o)
	return nil
}

func (b *Bench) startSeed(ctx context.Context, crds []string) error {
	if err := b.Seed.startEtcd(ctx); err != nil {
		return err
	}
	if err := b.Seed.StartAPIServer(ctx); err != nil {
		return err
	}
	if err := b.createCRDs(ctx, crds); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.Namespace, Labels: map[string]string{
		// As gardenlet labels it, pkg/gardenlet/operation/botanist/namespaces.go in v1.149.3.
		"gardener.cloud/role": "shoot",
	}}}
	if err := b.Seed.Client().Create(ctx, namespace); err != nil {
		return fmt.Errorf("failed to create namespace: %w", err)
	}
	return nil
}

func (b *Bench) startShoot(ctx context.Context, machines int) error {
	if err := b.Shoot.startEtcd(ctx); err != nil {
		return err
	}
	if err := b.Shoot.StartAPIServer(ctx); err != nil {
		return err
	}
	// They take turns inside, but not with the Deployment and the machines.
	starts, startCtx := errgroup.WithContext(ctx)
	starts.Go(func() error { return b.Shoot.StartControllerManager(startCtx) })
	starts.Go(func() error { return b.Shoot.StartScheduler(startCtx) })
	vpn := vpnDeployment()
	if err := b.Shoot.Client().Create(ctx, vpn); err != nil {
		return errors.Join(fmt.Errorf("failed to create deployment of the tunnel: %w", err), starts.Wait())
	}
	if machines > 0 {
		if err := b.Machines.Scale(ctx, machines); err != nil {
			return errors.Join(err, starts.Wait())
		}
	}
	if err := starts.Wait(); err != nil || machines < 0 {
		return err
	}
	if err := b.Machines.WaitReady(ctx); err != nil {
		return err
	}
	return waitFor(ctx, b.Shoot.Client(), vpn, "ready", func() bool { return vpn.Status.ReadyReplicas > 0 })
}

// Close ends every process of the bench and removes a temporary Dir. It may be called more than once, and on a bench
// that did not start.
func (b *Bench) Close() error {
	if b == nil {
		return nil
	}
	leaving := b.end()
	if !b.temporary {
		return leaving
	}
	if err := os.RemoveAll(b.Dir); err != nil {
		return errors.Join(leaving, fmt.Errorf("failed to remove directory: %w", err))
	}
	return leaving
}

// end ends every process and leaves the uses of rights.
func (b *Bench) end() error {
	for _, c := range b.controllers {
		c.Kill()
	}
	if b.resourceManager != nil {
		b.resourceManager.kill()
	}
	if b.Machines != nil {
		b.Machines.close()
	}
	var closing sync.WaitGroup
	for _, c := range []*ControlPlane{b.Shoot, b.Seed} {
		if c != nil {
			closing.Go(c.close)
		}
	}
	closing.Wait()
	if b.Tunnel != nil {
		b.Tunnel.close()
	}
	b.ports.close()
	return b.leaveUses()
}
