// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

// Who writes webhook configurations; others are told by their user names.
const (
	byGuard   = "the guard"
	byKyverno = "Kyverno"

	kyvernoUsers = "system:serviceaccount:" + bench.KyvernoNamespace + ":"
)

// The timeouts of open hooks that GuardConfig has by default, in seconds.
const openValidating, openMutating = 3, 1

func openTimeout(h Hook) int32 {
	if h.Kind == bench.KindMutating {
		return openMutating
	}
	return openValidating
}

// change is what one write did to one hook.
type change struct {
	at       time.Time
	hook     Hook
	from, to *hook.Values // nil: not there
	by       string
}

// changes are those that the audit log tells of, in the order in which they were committed for each configuration.
func changes(events []auditv1.Event) ([]change, error) {
	var all []change
	states := map[string]map[string]hook.Values{}
	err := eachWrite(events, func(e *auditv1.Event, o client.Object) error {
		c := view(o)
		key, now := string(c.Kind)+c.Name, map[string]hook.Values{}
		if e.Verb != "delete" {
			for _, h := range c.Hooks {
				now[h.Name] = h.Values
			}
		}
		for _, name := range slices.Sorted(keysOf(states[key], now)) {
			from, was := states[key][name]
			to, is := now[name]
			if was == is && from == to {
				continue
			}
			one := change{at: e.StageTimestamp.Time, hook: Hook{string(c.Kind), c.Name, name}, by: writer(e)}
			if was {
				one.from = &from
			}
			if is {
				one.to = &to
			}
			all = append(all, one)
		}
		states[key] = now
		return nil
	})
	return all, err
}

func keysOf(maps ...map[string]hook.Values) func(func(string) bool) {
	return func(yield func(string) bool) {
		seen := map[string]bool{}
		for _, m := range maps {
			for key := range m {
				if !seen[key] && !yield(key) {
					return
				}
				seen[key] = true
			}
		}
	}
}

// foreignWrites are the writes of the guard that changed more than the failure policy and timeout of hooks, its own
// annotation, the label of a claim, and field ownership.
func foreignWrites(events []auditv1.Event) ([]string, error) {
	var found []string
	states := map[string]client.Object{}
	err := eachWrite(events, func(e *auditv1.Event, o client.Object) error {
		key := name(e)
		bare := withoutOurFields(o)
		if before := states[key]; writer(e) == byGuard && (before == nil || e.Verb == "delete" || !equality.Semantic.DeepEqual(before, bare)) {
			found = append(found, fmt.Sprintf("%s of %s by the guard at %s", e.Verb, key, e.StageTimestamp.Format("15:04:05.000")))
		}
		states[key] = bare
		return nil
	})
	return found, err
}

// withoutOurFields is a copy without what the guard may write and what follows from a write.
func withoutOurFields(o client.Object) client.Object {
	o = o.DeepCopyObject().(client.Object)
	annotations := o.GetAnnotations()
	delete(annotations, v1alpha1.OriginalsAnnotation)
	o.SetAnnotations(annotations)
	labels := o.GetLabels()
	delete(labels, v1alpha1.ClaimLabel)
	o.SetLabels(labels)
	o.SetManagedFields(nil)
	o.SetResourceVersion("")
	o.SetGeneration(0)
	switch c := o.(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range c.Webhooks {
			c.Webhooks[i].FailurePolicy, c.Webhooks[i].TimeoutSeconds = nil, nil
		}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range c.Webhooks {
			c.Webhooks[i].FailurePolicy, c.Webhooks[i].TimeoutSeconds = nil, nil
		}
	}
	return o
}

// eachWrite calls do for each write of a webhook configuration that succeeded, in the order of resource versions: the
// audit log is in that of the requests. A deletion, which is answered without one, comes after what was answered before.
func eachWrite(events []auditv1.Event, do func(*auditv1.Event, client.Object) error) error {
	type write struct {
		event   *auditv1.Event
		object  client.Object
		version uint64
	}
	var writes []write
	var last uint64
	for _, e := range byAnswer(events) {
		object := newConfiguration(e.ObjectRef)
		if object == nil || !succeeded(e) || e.ResponseObject == nil {
			continue
		}
		if e.Verb == "delete" {
			object.SetName(e.ObjectRef.Name)
		} else if err := json.Unmarshal(e.ResponseObject.Raw, object); err != nil {
			return fmt.Errorf("failed to decode %s: %w", name(e), err)
		}
		version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
		if err != nil {
			version = last
		}
		last = max(last, version)
		writes = append(writes, write{e, object, version})
	}
	slices.SortStableFunc(writes, func(a, b write) int { return cmp.Compare(a.version, b.version) })
	for _, w := range writes {
		if err := do(w.event, w.object); err != nil {
			return err
		}
	}
	return nil
}

func byAnswer(events []auditv1.Event) []*auditv1.Event {
	var sorted []*auditv1.Event
	for i := range events {
		sorted = append(sorted, &events[i])
	}
	slices.SortStableFunc(sorted, func(a, b *auditv1.Event) int { return a.StageTimestamp.Compare(b.StageTimestamp.Time) })
	return sorted
}

func succeeded(e *auditv1.Event) bool {
	return e.ResponseStatus != nil && e.ResponseStatus.Code < http.StatusMultipleChoices
}

// newConfiguration is nil for what is no webhook configuration.
func newConfiguration(o *auditv1.ObjectReference) client.Object {
	if o == nil {
		return nil
	}
	switch o.Resource {
	case "validatingwebhookconfigurations":
		return &admissionregistrationv1.ValidatingWebhookConfiguration{}
	case "mutatingwebhookconfigurations":
		return &admissionregistrationv1.MutatingWebhookConfiguration{}
	}
	return nil
}

func view(o client.Object) hook.Configuration {
	if mutating, ok := o.(*admissionregistrationv1.MutatingWebhookConfiguration); ok {
		return hook.FromMutating(mutating)
	}
	return hook.FromValidating(o.(*admissionregistrationv1.ValidatingWebhookConfiguration))
}

// writer says who made a request, as far as the demo tells them apart.
func writer(e *auditv1.Event) string {
	switch {
	case strings.HasPrefix(e.UserAgent, bench.ControllerAgent):
		return byGuard
	case strings.HasPrefix(e.User.Username, kyvernoUsers):
		return byKyverno
	}
	return e.User.Username
}

func name(e *auditv1.Event) string { return e.ObjectRef.Resource + " " + e.ObjectRef.Name }

// writesOf counts the requests of the guard since a time that were to change a webhook configuration, refused ones
// included.
func writesOf(events []auditv1.Event, since time.Time) Writes {
	writes := Writes{Each: map[string]int{}}
	for i := range events {
		e := &events[i]
		if newConfiguration(e.ObjectRef) == nil || writer(e) != byGuard || e.RequestReceivedTimestamp.Time.Before(since) {
			continue
		}
		writes.Each[name(e)]++
		writes.Max = max(writes.Max, writes.Each[name(e)])
	}
	return writes
}

// restorers are the changes by which hooks got their originals last, since a time.
func restorers(all []change, hooks []Hook, originals map[Hook]hook.Values, since time.Time) map[Hook]change {
	found := map[Hook]change{}
	for _, c := range all {
		original, known := originals[c.hook]
		if known && slices.Contains(hooks, c.hook) && c.to != nil && *c.to == original && (c.from == nil || *c.from != original) && !c.at.Before(since) {
			found[c.hook] = c
		}
	}
	return found
}

// openIn are the hooks that stand open, sorted: fail-open with a short timeout, and those are not their own values.
func openIn(now, originals map[Hook]hook.Values) []Hook {
	open := []Hook{}
	for h, values := range now {
		if values != originals[h] && isOpen(h, &values) {
			open = append(open, h)
		}
	}
	slices.SortFunc(open, compareHooks)
	return open
}

// isOpen says whether a hook stands fail-open with a short timeout.
func isOpen(h Hook, v *hook.Values) bool {
	return v != nil && v.Policy == admissionregistrationv1.Ignore && v.Timeout <= openTimeout(h)
}

func compareHooks(a, b Hook) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Configuration, b.Configuration), cmp.Compare(a.Hook, b.Hook))
}

// refusals are the requests that were answered with an error that names a webhook, most frequent first. The machines'
// own view is added for what the log does not have.
func refusals(events []auditv1.Event, machines []bench.Blocked) []Blocked {
	type key struct{ verb, resource, text string }
	counts, own := map[key]int{}, map[key]int{}
	for i := range events {
		if e := &events[i]; namesWebhook(e) {
			counts[key{e.Verb, resource(e.ObjectRef), e.ResponseStatus.Message}]++
		}
	}
	for _, b := range machines {
		if strings.Contains(b.Text, webhookWord) {
			own[key{b.Verb, b.Resource, b.Text}] += b.Count
		}
	}
	for k, n := range own {
		counts[k] = max(counts[k], n)
	}
	found := []Blocked{}
	for k, n := range counts {
		found = append(found, Blocked{Verb: k.verb, Resource: k.resource, Text: k.text, Count: n})
	}
	slices.SortFunc(found, func(a, b Blocked) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Text, b.Text))
	})
	return found
}

// webhookWord is in the API server's text for a webhook that denied a request and for one that could not be called.
const webhookWord = `webhook "`

func namesWebhook(e *auditv1.Event) bool {
	s := ptr.Deref(e.ResponseStatus, metav1.Status{})
	return e.ObjectRef != nil && s.Code >= http.StatusBadRequest && strings.Contains(s.Message, webhookWord)
}

func resource(o *auditv1.ObjectReference) string {
	if o.Subresource == "" {
		return o.Resource
	}
	return o.Resource + "/" + o.Subresource
}
