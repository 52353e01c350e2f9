// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// NewAPIServers starts a Bench of two API servers and nothing else: no controllers, no machines, and a tunnel that nobody
// uses. Nodes, pods and endpoints are what a test makes them. It leaves nothing behind if it fails.
func NewAPIServers(ctx context.Context, o Options) (*Bench, error) {
	b := &Bench{Namespace: o.Namespace, Dir: o.Dir, Log: o.Log}
	begin := time.Now()
	if err := b.startAPIServers(ctx, o.withDefaults()); err != nil {
		return nil, errors.Join(fmt.Errorf("failed to start API servers: %w", err), b.Close())
	}
	b.Log.Info("API servers ready", "took", time.Since(begin).Round(time.Millisecond).String(), "dir", b.Dir)
	return b, nil
}

func (b *Bench) startAPIServers(ctx context.Context, o Options) error {
	if err := b.prepare(o); err != nil {
		return err
	}
	starts, startCtx := errgroup.WithContext(ctx)
	starts.Go(func() error { return b.startSeed(startCtx, o.SeedCRDs) })
	starts.Go(func() error {
		if err := b.Shoot.startEtcd(startCtx); err != nil {
			return err
		}
		return b.Shoot.StartAPIServer(startCtx)
	})
	return starts.Wait()
}

// Store writes an object into the control plane's etcd, past its API server, for objects that the API server of today would
// not accept. key is where it keeps such an object, for example /registry/configmaps/default/name.
func (c *ControlPlane) Store(ctx context.Context, key string, object any) error {
	value, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("failed to encode object: %w", err)
	}
	body, err := json.Marshal(etcdEntry{Key: []byte(key), Value: value})
	if err != nil {
		return fmt.Errorf("failed to encode request: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+loopback(c.etcdPort)+"/v3/kv/put", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("failed to make request: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("failed to store %s: %w", key, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("failed to store %s: etcd answers %s", key, response.Status)
	}
	return nil
}
