// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/shoot"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/snapshot"
)

const (
	// connectPatience is how long the lifecycle call of a transition tries to reach an API server that should run; it must
	// return within 20 s.
	connectPatience = 12 * time.Second
	// connectInterval is the time between two tries.
	connectInterval = 500 * time.Millisecond
)

// errNotRenewed says that the renewal of the token is due and still awaited.
var errNotRenewed = errors.New("the extension's token in the Shoot is not renewed yet")

// connect reaches the API server and lists the configurations. The lifecycle call of a transition tries for a while, and last by
// Gardener's own kubeconfig: gardenlet has just proved that it works. Nothing else waits, or uses that.
func (p *pass) connect(ctx context.Context) error {
	if !p.lifecycle || !p.inTransition() {
		return p.try(ctx, p.guard.Shoots.Get)
	}
	begin := time.Now()
	var last error
	err := wait.PollUntilContextTimeout(ctx, connectInterval, connectPatience, true, func(ctx context.Context) (bool, error) {
		patient := time.Since(begin) < p.guard.TokenPatience
		tried := p.try(ctx, p.own(patient))
		if !patient && p.guard.AdminFallback && shoot.NoAccess(tried) {
			p.log.Info("Gardener's own kubeconfig of the Shoot is used for this call", "reason", tried.Error())
			tried = p.try(ctx, p.guard.Shoots.GetGardeners)
			p.fellBack = tried == nil
		}
		if tried == nil || last == nil || ctx.Err() == nil { // what the end of the time cut off does not tell why
			last = tried
		}
		return tried == nil, nil
	})
	if err != nil && last != nil {
		return last
	}
	return err
}

// notReached says why the Shoot could not be looked at.
func notReached(cause error) error {
	if shoot.NoAccess(cause) || errors.Is(cause, errNotRenewed) {
		return fmt.Errorf("the extension has no access to the Shoot: %w", cause)
	}
	return fmt.Errorf("the Shoot's API server does not answer: %w", cause)
}

// inTransition says whether the Shoot goes to sleep or wakes up, or has not come to the end of that.
func (p *pass) inTransition() bool {
	return p.facts.HibernationEnabled != p.facts.IsHibernated || p.onRecord()
}

// way gets a connection.
type way func(ctx context.Context, namespace string) (*shoot.Connection, error)

// own is by the extension's own kubeconfig; patient does without it as long as a renewal of the token is due.
func (p *pass) own(patient bool) way {
	return func(ctx context.Context, namespace string) (*shoot.Connection, error) {
		conn, err := p.guard.Shoots.Get(ctx, namespace)
		if err == nil && patient && !conn.Renewed(p.guard.Clock.Now()) {
			return nil, errNotRenewed
		}
		return conn, err
	}
}

// try connects and lists the configurations.
func (p *pass) try(ctx context.Context, get way) error {
	var err error
	if p.conn, err = get(ctx, p.key.Namespace); err != nil {
		return err
	}
	if p.configurations, err = snapshot.Configurations(ctx, p.conn.Client); err == nil && p.asksForNodes() {
		p.facts.NoNodes, err = snapshot.NoNodes(ctx, p.conn.Client)
	}
	if err != nil {
		p.guard.Shoots.Failed(p.key.Namespace, err)
	}
	return err
}

// asksForNodes says whether the phase depends on there being a Node.
func (p *pass) asksForNodes() bool {
	return p.facts.TransitionCall && !p.facts.HibernationEnabled && !p.facts.IsHibernated && !p.facts.OnRecord
}
