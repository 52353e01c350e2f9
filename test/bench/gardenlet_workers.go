// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// gardenletWorkers stands for the Worker object and its controller: it goes on scaling when gardenlet does not wait,
// and starts over when it failed.
type gardenletWorkers struct {
	machines *Machines
	log      logr.Logger

	mu     sync.Mutex
	want   int
	err    error              // of the last attempt
	done   chan struct{}      // closed when want is reached or given up
	cancel context.CancelFunc // nil: nothing was ever wanted
}

// scale wants n machines from now on. A scaling that is under way is given up, but a machine that was told to go goes.
func (w *gardenletWorkers) scale(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel != nil && w.want == n {
		return
	}
	before, giveUp, wereToGo := w.done, w.cancel, w.want == 0
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	w.want, w.err, w.done, w.cancel = n, nil, done, cancel
	go func() {
		defer close(done)
		if before != nil {
			lost := wereToGo && w.awaitLoss(ctx, before)
			giveUp()
			<-before
			if lost {
				w.machines.Abandon() // new machines do not wait for the Node objects of old ones
			}
		}
		w.reach(ctx, n)
	}()
}

// awaitLoss waits until all machines are gone. It says whether their Node objects could not be deleted within two more
// attempts.
func (w *gardenletWorkers) awaitLoss(ctx context.Context, gone <-chan struct{}) bool {
	var lost time.Time
	for {
		select {
		case <-gone:
			return false
		case <-ctx.Done():
			return false
		case <-time.After(100 * time.Millisecond):
		}
		if lost.IsZero() && len(w.machines.Nodes()) == 0 {
			lost = time.Now()
		}
		if !lost.IsZero() && time.Since(lost) > 2*machineRetry {
			return true
		}
	}
}

func (w *gardenletWorkers) reach(ctx context.Context, n int) {
	for ctx.Err() == nil {
		err := w.machines.Scale(ctx, n)
		if err == nil && n > 0 {
			err = w.machines.WaitReady(ctx)
		}
		w.mu.Lock()
		w.err = err
		w.mu.Unlock()
		if err == nil {
			return
		}
		w.log.Error(err, "Failed to scale machines", "machines", n)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// wait waits until the wanted machines are there, with their nodes Ready, or gone.
func (w *gardenletWorkers) wait(ctx context.Context) error {
	w.mu.Lock()
	done, n := w.done, w.want
	w.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.err != nil {
			return fmt.Errorf("failed to wait for %d machines: %w: %w", n, ctx.Err(), w.err)
		}
		return fmt.Errorf("failed to wait for %d machines: %w", n, ctx.Err())
	}
}

// abandon loses all machines at once; none is wanted from then on.
func (w *gardenletWorkers) abandon() {
	w.close()
	w.machines.Abandon()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel == nil {
		w.cancel = func() {}
	}
	w.want, w.err = 0, nil
}

// close gives up what is under way.
func (w *gardenletWorkers) close() {
	w.mu.Lock()
	cancel, done := w.cancel, w.done
	w.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	if done != nil {
		<-done
	}
}
