// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/backend"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/decide"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/scope"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/snapshot"
)

// world is what the Shoot says about the backends.
type world struct {
	cluster  backend.Cluster
	verdicts map[backend.Ref]backend.Verdict
}

// errNotAsked stands for facts that could change nothing.
var errNotAsked = errors.New("the backend was not asked for")

// readWorld reads and judges the backends that decisions depend on.
func (p *pass) readWorld(ctx context.Context) {
	refs := p.refs()
	p.world = world{verdicts: map[backend.Ref]backend.Verdict{}}
	inTransition := p.phase == phase.GoingDown || p.phase == phase.WakingUp
	if len(refs) == 0 && !inTransition {
		return
	}
	for ref := range refs {
		p.conn.Interested(ref.Namespace)
	}
	reader := p.conn.Reader()
	if p.lifecycle {
		reader = p.conn.Client
	}
	cluster := snapshot.Cluster(ctx, reader, p.conn.Now(p.now))
	switch {
	case cluster.Err != nil:
		p.log.Error(cluster.Err, "Backends cannot be judged")
	case !cluster.ReadyNode():
		p.memory.readyNodeSince = cluster.ReadyNodeSince
	case p.memory.readyNodeSince.IsZero():
		p.memory.readyNodeSince = cluster.Now
	}
	cluster.ReadyNodeSince = p.memory.readyNodeSince
	p.world.cluster = cluster
	if p.lifecycle && cluster.Err == nil && (!cluster.FreshNode() || !cluster.TunnelUp()) {
		// No backend can answer: a wake-up's call has no time to ask about each of them.
		for ref := range refs {
			p.world.verdicts[ref] = backend.Judge(cluster, ref, backend.Facts{NamespaceFound: true, Err: errNotAsked})
		}
		return
	}
	for ref, facts := range snapshot.Backends(ctx, reader, refs) {
		p.world.verdicts[ref] = backend.Judge(cluster, ref, facts)
	}
}

// noteVerdicts records what the backends said before the sleep, once. After nodes have begun to go, as they may have in any call but
// the first of a hibernation, only a backend that is ready says something.
func (p *pass) noteVerdicts() {
	if cluster := p.world.cluster; cluster.Err != nil || !cluster.ReadyNode() || !cluster.TunnelUp() {
		return
	}
	first := p.state.Cycle.Begun.Time.Equal(p.now)
	for key, rec := range p.state.Hooks {
		if rec.Verdict != "" || rec.Backend == nil {
			continue
		}
		v, known := p.world.verdicts[refOf(rec.Backend.Namespace, rec.Backend.Name, rec.Backend.Port)]
		if known && (first || v.State == backend.Ready) {
			rec.Verdict, rec.VerdictReason = string(v.State), string(v.Reason)
			p.state.Hooks[key] = rec
		}
	}
}

// refs are the backends of the hooks on record or with our annotation; in a transition of all hooks in scope.
func (p *pass) refs() map[backend.Ref]struct{} {
	refs := map[backend.Ref]struct{}{}
	inTransition := p.phase == phase.GoingDown || p.phase == phase.WakingUp
	for _, rec := range p.state.Hooks {
		if rec.Backend != nil {
			refs[refOf(rec.Backend.Namespace, rec.Backend.Name, rec.Backend.Port)] = struct{}{}
		}
	}
	for _, c := range p.configurations {
		_, annotated := c.Annotations[v1alpha1.OriginalsAnnotation]
		for _, h := range c.Hooks {
			_, recorded := p.state.Hooks[c.Key(h)]
			if h.Service != nil && (annotated || recorded || inTransition && scope.Judge(c, h, p.config.Webhooks).InScope) {
				refs[refOf(h.Service.Namespace, h.Service.Name, h.Service.Port)] = struct{}{}
			}
		}
	}
	return refs
}

// decideAll decides on every hook that exists or is on record, and takes the records over into the state.
func (p *pass) decideAll() {
	p.decisions = map[string]decided{}
	shared := p.shootFacts()
	p.begun = shared.Begun
	uids := map[configurationKey]bool{}
	for _, c := range p.configurations {
		uids[keyOf(c)] = true
		originals, _ := c.Originals() // what can be trusted of them
		for i := range c.Hooks {
			p.decideOn(shared, p.subject(c, &c.Hooks[i], originals), c.Key(c.Hooks[i]))
		}
	}
	for key, rec := range p.state.Hooks {
		if _, known := p.decisions[key]; known {
			continue
		}
		s := decide.Subject{Record: rec.DeepCopy(), Memory: p.memory.hooks[key]}
		s.ConfigurationExists = uids[configurationKey{hook.Kind(rec.Kind), rec.UID}]
		if rec.Backend != nil {
			s.Verdict = p.verdict(refOf(rec.Backend.Namespace, rec.Backend.Name, rec.Backend.Port))
		}
		p.decideOn(shared, s, key)
	}
	p.memory.prune(p.decisions, uids)
}

func (p *pass) subject(c hook.Configuration, h *hook.Hook, originals v1alpha1.Originals) decide.Subject {
	key := c.Key(*h)
	s := decide.Subject{
		Configuration: c, Hook: h, ConfigurationExists: true, Scope: scope.Judge(c, *h, p.config.Webhooks),
		Memory: p.memory.hooks[key], Opens: p.memory.opens[keyOf(c)],
	}
	if rec, onRecord := p.state.Hooks[key]; onRecord {
		s.Record = &rec
	}
	if original, annotated := originals.Hooks[h.Name]; annotated {
		s.Annotated = &original
	}
	if h.Service != nil {
		s.Verdict = p.verdict(refOf(h.Service.Namespace, h.Service.Name, h.Service.Port))
	}
	return s
}

func (p *pass) verdict(ref backend.Ref) *backend.Verdict {
	if v, known := p.world.verdicts[ref]; known {
		return &v
	}
	return nil
}

func (p *pass) decideOn(shared decide.Shoot, s decide.Subject, key string) {
	d := decide.Decide(shared, s)
	p.decisions[key] = decided{s, d}
	p.memory.hooks[key] = d.Memory
	if d.BackendWent {
		opens := p.memory.opens[keyOf(s.Configuration)]
		opens.Streak = 0
		p.memory.opens[keyOf(s.Configuration)] = opens
	}
	if d.Record == nil {
		delete(p.state.Hooks, key)
		return
	}
	if p.state.Hooks == nil {
		p.state.Hooks = map[string]v1alpha1.HookRecord{}
	}
	p.state.Hooks[key] = *d.Record
}

func names[T any](m map[string]T) []string {
	return slices.Sorted(maps.Keys(m))
}
