// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
)

// Kinds of HookID.
const (
	KindValidating = "ValidatingWebhookConfiguration"
	KindMutating   = "MutatingWebhookConfiguration"
)

// HookID names one entry of a webhook configuration. In a Difference Hook is empty for what concerns the configuration
// as a whole.
type HookID struct{ Kind, Configuration, Hook string }

func (id HookID) String() string { return id.Kind + " " + id.Configuration + "/" + id.Hook }

func compareHooks(a, b HookID) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Configuration, b.Configuration), cmp.Compare(a.Hook, b.Hook))
}

// Sighting is a state of a hook and when the witness saw it first, some milliseconds after the write was committed. The
// API's defaults stand for values that are not set. The zero value is that of a hook never seen.
type Sighting struct {
	At             time.Time
	FailurePolicy  string
	TimeoutSeconds int32
	// UID is the configuration's.
	UID types.UID
	// Exists is false once the entry or its configuration is gone; the rest is then as it was last.
	Exists bool
}

// Witness watches all webhook configurations of the Shoot in its etcd: each committed write, in order, whoever made it,
// while the API server is down as well as while it runs, and without a request to it.
type Witness struct {
	etcd     string
	client   *http.Client
	cancel   context.CancelFunc
	watching sync.WaitGroup

	mu      sync.Mutex
	hooks   map[HookID][]Sighting
	changed chan struct{} // closed and replaced at each change
	err     error
}

// etcdKeys is a directory of etcd and the first key after it, as base64 in JSON.
type etcdKeys struct {
	Key []byte `json:"key"`
	End []byte `json:"range_end"`
}

// directories are where the API server keeps webhook configurations, by kind.
var directories = map[string]etcdKeys{
	KindValidating: {[]byte("/registry/validatingwebhookconfigurations/"), []byte("/registry/validatingwebhookconfigurations0")},
	KindMutating:   {[]byte("/registry/mutatingwebhookconfigurations/"), []byte("/registry/mutatingwebhookconfigurations0")},
}

// Witness returns one that knows the present state of all hooks. It works until Close.
func (b *Bench) Witness(ctx context.Context) (*Witness, error) {
	w := &Witness{
		etcd: "http://" + loopback(b.Shoot.etcdPort), client: &http.Client{Transport: &http.Transport{}},
		hooks: map[HookID][]Sighting{}, changed: make(chan struct{}),
	}
	watchCtx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	for kind, keys := range directories {
		present := &etcdRange{}
		err := w.post(ctx, "/v3/kv/range", keys, func(d *json.Decoder) error { return d.Decode(present) })
		for _, entry := range present.Entries {
			err = errors.Join(err, w.put(kind, entry, time.Now()))
		}
		if err != nil {
			w.Close()
			return nil, fmt.Errorf("failed to read %ss: %w", kind, err)
		}
		w.watching.Go(func() { w.watch(watchCtx, kind, keys, present.Header.Revision+1) })
	}
	return w, nil
}

// Close ends the watch. What was seen stays.
func (w *Witness) Close() {
	w.cancel()
	w.watching.Wait()
	w.client.CloseIdleConnections()
}

// Err is why the witness may have missed something; nil if it has seen everything.
func (w *Witness) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// History is what the witness saw of a hook: changes only, in order.
func (w *Witness) History(id HookID) []Sighting {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.hooks[id])
}

// Hooks are all hooks that were ever seen, sorted.
func (w *Witness) Hooks() []HookID {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ids []HookID
	for id := range w.hooks {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, compareHooks)
	return ids
}

// At is what the witness had seen last of a hook at a time, that time included.
func (w *Witness) At(id HookID, t time.Time) Sighting {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range slices.Backward(w.hooks[id]) {
		if !s.At.After(t) {
			return s
		}
	}
	return Sighting{}
}

// Now is what the witness saw last of a hook.
func (w *Witness) Now(id HookID) Sighting {
	w.mu.Lock()
	defer w.mu.Unlock()
	history := w.hooks[id]
	if len(history) == 0 {
		return Sighting{}
	}
	return history[len(history)-1]
}

// Await returns when done is true, which is asked at once and after each change of a hook, or with an error when ctx
// ends before.
func (w *Witness) Await(ctx context.Context, done func() bool) error {
	for {
		w.mu.Lock()
		changed := w.changed
		w.mu.Unlock()
		if done() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("failed to see the hooks as awaited: %w", errors.Join(ctx.Err(), w.Err()))
		}
	}
}

// Messages of etcd's JSON gateway (api/etcdserverpb/rpc.proto in v3.6): int64 are strings, bytes base64.
type (
	etcdEntry struct {
		Key      []byte `json:"key"`
		Value    []byte `json:"value"`
		Revision int64  `json:"mod_revision,string"`
	}
	etcdRange struct {
		Header struct {
			Revision int64 `json:"revision,string"`
		} `json:"header"`
		Entries []etcdEntry `json:"kvs"`
	}
	etcdWatchRequest struct {
		etcdKeys
		Revision int64 `json:"start_revision,string"`
	}
	etcdWatch struct {
		Result struct {
			Canceled bool   `json:"canceled"`
			Reason   string `json:"cancel_reason"`
			Events   []struct {
				Type  string    `json:"type"` // left out for PUT
				Entry etcdEntry `json:"kv"`
			} `json:"events"`
		} `json:"result"`
	}
)

func (w *Witness) post(ctx context.Context, path string, body any, read func(*json.Decoder) error) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.etcd+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	response, err := w.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd answered %s", response.Status)
	}
	return read(json.NewDecoder(response.Body))
}

// watch takes over all events from a revision on; a watch that ends is begun again where it was.
func (w *Witness) watch(ctx context.Context, kind string, keys etcdKeys, revision int64) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		request := map[string]any{"create_request": etcdWatchRequest{keys, revision}}
		_ = w.post(ctx, "/v3/watch", request, func(d *json.Decoder) error {
			for {
				message := &etcdWatch{}
				if err := d.Decode(message); err != nil {
					return err
				}
				if message.Result.Canceled { // what is asked for was compacted away
					w.fail(fmt.Errorf("etcd cancelled the watch: %s", message.Result.Reason))
				}
				w.take(kind, message)
				if events := message.Result.Events; len(events) > 0 {
					revision = events[len(events)-1].Entry.Revision + 1
				}
			}
		})
	}, 50*time.Millisecond)
}

func (w *Witness) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = errors.Join(w.err, err)
}

func (w *Witness) take(kind string, message *etcdWatch) {
	now := time.Now()
	for _, event := range message.Result.Events {
		if event.Type == "DELETE" {
			w.record(kind, path.Base(string(event.Entry.Key)), nil, now)
		} else if err := w.put(kind, event.Entry, now); err != nil {
			w.fail(err)
		}
	}
}

func (w *Witness) put(kind string, entry etcdEntry, at time.Time) error {
	name := path.Base(string(entry.Key))
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(entry.Value, nil, nil)
	if err != nil {
		return fmt.Errorf("failed to decode %s %s: %w", kind, name, err)
	}
	w.record(kind, name, sightings(object, at), at)
	return nil
}

// sightings are the present hooks of a configuration, by hook name.
func sightings(object runtime.Object, at time.Time) map[string]Sighting {
	present := map[string]Sighting{}
	add := func(uid types.UID, name string, policy *admissionregistrationv1.FailurePolicyType, timeout *int32) {
		present[name] = Sighting{
			At: at, UID: uid, Exists: true,
			FailurePolicy: string(ptr.Deref(policy, admissionregistrationv1.Fail)), TimeoutSeconds: ptr.Deref(timeout, 10),
		}
	}
	switch c := object.(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for _, h := range c.Webhooks {
			add(c.UID, h.Name, h.FailurePolicy, h.TimeoutSeconds)
		}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for _, h := range c.Webhooks {
			add(c.UID, h.Name, h.FailurePolicy, h.TimeoutSeconds)
		}
	}
	return present
}

// record adds what changed to the histories of a configuration's hooks.
func (w *Witness) record(kind, name string, present map[string]Sighting, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, history := range w.hooks {
		if _, there := present[id.Hook]; id.Kind != kind || id.Configuration != name || there {
			continue
		}
		if last := history[len(history)-1]; last.Exists {
			last.At, last.Exists = at, false
			w.hooks[id] = append(history, last)
		}
	}
	for hook, seen := range present {
		id := HookID{kind, name, hook}
		history := w.hooks[id]
		if len(history) > 0 {
			last := history[len(history)-1]
			if last.At = at; last == seen {
				continue
			}
		}
		w.hooks[id] = append(history, seen)
	}
	close(w.changed)
	w.changed = make(chan struct{})
}
