// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package cycle_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

// look is what the Extension said at a time.
type look struct {
	at        time.Time
	condition gardencorev1beta1.Condition
	status    v1alpha1.GuardStatus
	record    v1alpha1.GuardState
}

// says returns the condition's status and reason.
func (l look) says() string { return string(l.condition.Status) + " " + l.condition.Reason }

// finished says whether nothing is open, on record or under way.
func (l look) finished() bool {
	return l.condition.Status == gardencorev1beta1.ConditionTrue && l.condition.Reason == v1alpha1.ReasonEnforced &&
		len(l.record.Hooks) == 0 && l.record.Cycle == nil
}

func (l look) has(state string) bool {
	return slices.ContainsFunc(l.status.Hooks, func(h v1alpha1.HookStatus) bool { return h.State == state })
}

// extensionLog keeps every state of the Extension.
type extensionLog struct {
	mu      sync.Mutex
	looks   []look
	changed chan struct{}
}

func watchExtension(t *testing.T, b *bench.Bench) *extensionLog {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	l := &extensionLog{changed: make(chan struct{})}
	watched, err := cache.New(b.Seed.Config(), cache.Options{
		Scheme: kubernetes.SeedScheme, DefaultNamespaces: map[string]cache.Config{b.Namespace: {}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	informer, err := watched.GetInformer(ctx, &extensionsv1alpha1.Extension{}, cache.BlockUntilSynced(false))
	g.Expect(err).NotTo(HaveOccurred())
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: l.add, UpdateFunc: func(_, object any) { l.add(object) },
	})
	g.Expect(err).NotTo(HaveOccurred())
	go func() { _ = watched.Start(ctx) }()
	return l
}

func (l *extensionLog) add(object any) {
	extension, ok := object.(*extensionsv1alpha1.Extension)
	if !ok {
		return
	}
	seen := look{at: time.Now()}
	for _, c := range extension.Status.Conditions {
		if c.Type == gardencorev1beta1.ShootSystemComponentsHealthy {
			seen.condition = c
		}
	}
	if raw := extension.Status.ProviderStatus; raw != nil {
		_ = json.Unmarshal(raw.Raw, &seen.status) // an empty one is asserted on
	}
	if raw := extension.Status.State; raw != nil {
		_ = json.Unmarshal(raw.Raw, &seen.record)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looks = append(l.looks, seen)
	close(l.changed)
	l.changed = make(chan struct{})
}

// since returns all looks from a time on.
func (l *extensionLog) since(t time.Time) []look {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.looks, func(k look) bool { return !k.at.Before(t) })
	if i < 0 {
		return nil
	}
	return slices.Clone(l.looks[i:])
}

func (l *extensionLog) last() look {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.looks) == 0 {
		return look{}
	}
	return l.looks[len(l.looks)-1]
}

// await returns the first look from a time on that is as wanted.
func (l *extensionLog) await(ctx context.Context, from time.Time, what string, wanted func(look) bool) (look, error) {
	for {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		looks := l.since(from)
		if i := slices.IndexFunc(looks, wanted); i >= 0 {
			return looks[i], nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			last := l.last()
			return look{}, fmt.Errorf("failed to see the Extension %s: %w; it says %s: %s, %+v", what, ctx.Err(), last.says(), last.condition.Message, last.status)
		}
	}
}

// doorbell listens where the Shoot's API server does while that sleeps, and counts who wants to ask it something.
type doorbell struct {
	listener net.Listener
	done     chan struct{}
	rings    int
}

func listenForRequests(host string) (*doorbell, error) {
	listener, err := net.Listen("tcp", strings.TrimPrefix(host, "https://"))
	if err != nil {
		return nil, err
	}
	d := &doorbell{listener: listener, done: make(chan struct{})}
	go func() {
		defer close(d.done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			d.rings++
			_ = conn.Close()
		}
	}()
	return d, nil
}

// close frees the address and returns how many connections there were.
func (d *doorbell) close() int {
	_ = d.listener.Close()
	<-d.done
	return d.rings
}
