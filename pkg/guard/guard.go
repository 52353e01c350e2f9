// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package guard holds the pass over one Shoot: look, decide, write, tell. Lifecycle calls and the loop run the same pass,
// one at a time per Shoot.
package guard

import (
	"context"
	"maps"
	"sync"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/backend"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/decide"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/garden"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/shoot"
)

// Guard runs passes. It is safe for concurrent use.
type Guard struct {
	// Seed reads from the cache and writes.
	Seed client.Client
	// Fresh reads from the seed's API server.
	Fresh client.Reader
	// Shoots are the connections to the Shoots.
	Shoots *shoot.Connections
	// Garden writes constraints to the Shoots in the garden cluster; nil: no access to it.
	Garden *garden.Constraints
	// Events on the Extension.
	Events events.EventRecorder
	// Clock of the seed.
	Clock clock.Clock
	// SyncPeriod is the time between two passes over an awake Shoot, give or take a tenth.
	SyncPeriod time.Duration
	// TokenPatience is how long the lifecycle call of a transition waits for the renewal of the extension's token in the Shoot.
	TokenPatience time.Duration
	// AdminFallback lets such a call use Gardener's own kubeconfig of the Shoot if the extension's access does not work by then.
	AdminFallback bool
	// Constraint says for all Shoots what is done about Gardener's constraint HibernationPossible.
	Constraint v1alpha1.ConstraintHandling
	// Loop is told after a lifecycle call that the loop has to go on. It must not block.
	Loop func(types.NamespacedName)

	mu      sync.Mutex
	shoots  map[types.NamespacedName]*entry
	started time.Time // when the first pass began
}

// entry is what is kept of one Shoot between passes.
type entry struct {
	turn   chan struct{} // holds one token while a pass runs
	yield  context.CancelFunc
	calls  int // lifecycle calls that wait for their turn
	users  int // passes that run or wait
	memory memory
}

// memory speeds decisions up; none depends on it to be right.
type memory struct {
	hooks    map[string]decide.Memory
	opens    map[configurationKey]decide.Opens
	refusals map[configurationKey]refusal
	// readyNodeSince is since when there has been a ready node without a break.
	readyNodeSince time.Time
	// failed counts the passes in a row that could not see or write what they should; careFailed those over an awake Shoot.
	failed, careFailed int
	// constraints are what the Shoot in the garden was last told, at toldGarden.
	constraints []gardencorev1beta1.Condition
	toldGarden  time.Time
	// kyvernoWaits counts the passes in which Kyverno has not taken the label over from its ConfigMap.
	kyvernoWaits int
	// services of hooks, and whether they exist.
	services map[types.NamespacedName]service
	// report is what was written last for the Shoot's owner.
	report string
	// started says that startAt is set: before it an awake Shoot is not looked at, unless it is no longer as in startSeen.
	started   bool
	startAt   time.Time
	startSeen string
}

type service struct {
	exists bool
	at     time.Time // when it was asked for
}

// maxBackOff bounds the time between two passes over a Shoot that does not answer or refuses writes.
const maxBackOff = 15 * time.Second

// backOff counts a failed pass and says when to try again: after 1, 2, 4 … 15 s.
func (m *memory) backOff() time.Duration {
	m.failed++
	return min(maxBackOff, time.Second<<min(m.failed-1, 4))
}

// tryAgain forgets which configurations were refused. The reason need not be their own: another webhook or a policy may have
// refused them.
func (m *memory) tryAgain() {
	clear(m.refusals)
	for key, opens := range m.opens {
		opens.Refused, opens.RefusedAt = "", ""
		m.opens[key] = opens
	}
}

// prune forgets hooks and configurations that no decision was about.
func (m *memory) prune(hooks map[string]decided, configurations map[configurationKey]bool) {
	maps.DeleteFunc(m.hooks, func(key string, _ decide.Memory) bool { _, known := hooks[key]; return !known })
	maps.DeleteFunc(m.opens, func(key configurationKey, _ decide.Opens) bool { return !configurations[key] })
	maps.DeleteFunc(m.refusals, func(key configurationKey, _ refusal) bool { return !configurations[key] })
}

type configurationKey struct {
	kind hook.Kind
	uid  types.UID
}

type refusal struct {
	version, message string
	times            int
}

func keyOf(c hook.Configuration) configurationKey { return configurationKey{c.Kind, c.UID} }

// Outcome of a pass.
type Outcome struct {
	// Exists is false when the Extension is gone.
	Exists bool
	// Phase of the Shoot.
	Phase phase.Phase
	// OnRecord says that hooks are on record that still exist, or may again.
	OnRecord bool
	// InTransition says that the Shoot goes to sleep or wakes up, or has not come to the end of that.
	InTransition bool
	// Claimed says that claims are on record.
	Claimed bool
	// DeadlinePassed says that the waking-up deadline has passed.
	DeadlinePassed bool
	// HibernationEnabled is the Cluster's word.
	HibernationEnabled bool
	// NextCheck is when the loop has to look again; zero when an event will tell.
	NextCheck time.Duration
	// ConfigError is why the providerConfig could not be used; nil when it could.
	ConfigError error
	// HoldBack is why hibernation is not to go on yet; nil when it may.
	HoldBack error
}

// Pass runs one pass over the Shoot of the Extension. A lifecycle pass is gardenlet's call: a running loop pass yields to it.
func (g *Guard) Pass(ctx context.Context, log logr.Logger, key types.NamespacedName, lifecycle bool) (Outcome, error) {
	e := g.enter(key)
	gone := false
	defer func() { g.leave(key, e, gone) }()
	if lifecycle {
		g.callWaits(e, 1)
	}
	var err error
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if lifecycle {
		g.callWaits(e, -1)
	}
	if err != nil {
		return Outcome{}, err
	}
	defer func() { <-e.turn }()

	passCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !lifecycle {
		g.setYield(e, cancel)
		defer g.setYield(e, nil)
	}
	p := &pass{guard: g, log: log, key: key, lifecycle: lifecycle, memory: &e.memory, now: g.Clock.Now()}
	outcome, err := p.run(passCtx)
	p.measure(outcome, err)
	gone = err == nil && !outcome.Exists
	if lifecycle && g.Loop != nil {
		g.Loop(key)
	}
	return outcome, err
}

// enter returns what is kept of a Shoot, and keeps it as long as somebody uses it: two entries would mean two passes at a time.
func (g *Guard) enter(key types.NamespacedName) *entry {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shoots == nil {
		g.shoots = map[types.NamespacedName]*entry{}
	}
	e := g.shoots[key]
	if e == nil {
		e = &entry{turn: make(chan struct{}, 1), memory: memory{
			hooks: map[string]decide.Memory{}, opens: map[configurationKey]decide.Opens{}, refusals: map[configurationKey]refusal{},
			services: map[types.NamespacedName]service{},
		}}
		g.shoots[key] = e
	}
	e.users++
	return e
}

func (g *Guard) leave(key types.NamespacedName, e *entry, gone bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.users--; gone && e.users == 0 {
		delete(g.shoots, key)
	}
}

// startedAt is when the first pass began.
func (g *Guard) startedAt(now time.Time) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.started.IsZero() {
		g.started = now
	}
	return g.started
}

// callWaits counts the calls that wait and interrupts the loop's pass for them.
func (g *Guard) callWaits(e *entry, change int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.calls += change; e.calls > 0 && e.yield != nil {
		e.yield()
	}
}

// setYield says how to interrupt the loop's pass that begins, and does so at once if a call waits already.
func (g *Guard) setYield(e *entry, cancel context.CancelFunc) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.yield = cancel; cancel != nil && e.calls > 0 {
		cancel()
	}
}

// refOf names the backend of a hook or of a record.
func refOf(namespace, name string, port int32) backend.Ref {
	return backend.Ref{Namespace: namespace, Name: name, Port: port}
}
