// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/scope"
)

// Decide says on which objects the label is set and removed, and tells of the gate. A configuration is claimed if Gardener's rule
// flags one of its hooks, label aside, and the guard opens every hook that it flags; Kyverno's configurations are one, and claimed
// in its ConfigMap. Given up is only what the record says the guard set. Hooks on record are judged by their own values: what is
// open now will not stay so.
func Decide(in Input) Result {
	d := &decision{in: in, claims: maps.Clone(in.Claims), notes: map[string]v1alpha1.Finding{}}
	if d.claims == nil {
		d.claims = map[string]v1alpha1.Claim{}
	}
	var kyverno []assessed
	for _, s := range in.Subjects {
		a := assess(s)
		d.all = append(d.all, a)
		switch {
		case in.Settings.Frozen != "":
		case a.kyverno():
			kyverno = append(kyverno, a)
		default:
			d.single(a)
		}
	}
	if in.Settings.Frozen == "" {
		d.forgetGone()
		d.kyverno(kyverno)
	}
	d.result.Claims = d.claims
	d.result.Status = d.status()
	return d.result
}

type decision struct {
	in     Input
	all    []assessed
	claims map[string]v1alpha1.Claim
	notes  map[string]v1alpha1.Finding // why an object that should be claimed is not, by claim key
	result Result
}

// assessed is a configuration with the indices of the hooks that Gardener flags when they stand at their own values, and of those
// among them that the guard does not open.
type assessed struct {
	Subject
	flagged, blocked []int
	gardeners        bool // Gardener manages it
}

func assess(s Subject) assessed {
	a := assessed{Subject: s}
	for i, h := range s.Configuration.Hooks {
		about := s.Hooks[i]
		a.gardeners = a.gardeners || about.Scope.Reason == scope.GardenerManaged
		if about.Original != nil {
			h.Values = *about.Original
		}
		if !Problematic(h) {
			continue
		}
		a.flagged = append(a.flagged, i)
		if !about.Scope.InScope || about.Cannot != "" {
			a.blocked = append(a.blocked, i)
		}
	}
	return a
}

func (a assessed) kyverno() bool {
	return !a.gardeners && a.Configuration.Labels[KyvernoLabel] == KyvernoName
}

func (a assessed) key() string { return keyOf(a.Configuration) }

func keyOf(c hook.Configuration) string { return v1alpha1.ClaimKey(string(c.Kind), "", c.Name, c.UID) }

// object is what can be claimed, as far as its label goes.
type object struct {
	kind, namespace, name string
	uid                   types.UID
	// value of the label; empty if it is absent.
	value string
	// managers own the label.
	managers []string
	// keyAdded: there is nothing around the label yet, see Claim.KeyAdded.
	keyAdded bool
}

func (o object) has() bool { return o.value == v1alpha1.ClaimValue }

// ours says that nobody else claims the label for himself.
func (o object) ours() bool {
	return !slices.ContainsFunc(o.managers, func(m string) bool { return m != v1alpha1.ClaimFieldManager })
}

// single decides on a configuration that is claimed by itself.
func (d *decision) single(a assessed) {
	c := a.Configuration
	if a.gardeners {
		delete(d.claims, a.key()) // Gardener has taken it over, and with it the label
		return
	}
	want := d.in.Settings.Left == nil && len(a.flagged) > 0 && len(a.blocked) == 0
	set, act := d.step(object{
		kind: string(c.Kind), name: c.Name, uid: c.UID, value: c.Labels[v1alpha1.ClaimLabel],
		managers: hook.Managers(c.ManagedFields, "f:metadata", "f:labels", "f:"+v1alpha1.ClaimLabel),
	}, want)
	if act {
		d.result.Actions = append(d.result.Actions, Action{Key: a.key(), Set: set, Configuration: &c})
	}
}

// step brings the claim on one object forward, and says whether the label is to be set or removed, or nothing is to be done.
func (d *decision) step(o object, want bool) (set, act bool) {
	key := v1alpha1.ClaimKey(o.kind, o.namespace, o.name, o.uid)
	claim, known := d.claims[key]
	if failure := d.in.Failures[key]; failure != "" {
		d.note(key, v1alpha1.FindingClaimFailed, fmt.Sprintf("The label %s could not be changed; it is tried again. %s", v1alpha1.ClaimLabel, failure))
		return false, false
	}
	if known && o.has() && (!o.ours() || claim.Removed >= maxRemoved) {
		delete(d.claims, key) // somebody wants the label for himself
		known = false
	}
	switch {
	case !want && known && o.has():
		return false, true
	case !want:
		delete(d.claims, key)
	case o.has() && known:
		claim.Pending = false
		d.claims[key] = claim
	case o.has(): // set by somebody else: the gate is open without us
	case o.value != "":
		delete(d.claims, key)
		d.note(key, v1alpha1.FindingClaimFailed, fmt.Sprintf(
			"Somebody set the label %s=%s, which the guard does not overwrite. Remove it, or set it to %s yourself.", v1alpha1.ClaimLabel, o.value, v1alpha1.ClaimValue))
	case !known:
		d.claims[key] = v1alpha1.Claim{
			Kind: o.kind, Namespace: o.namespace, Name: o.name, UID: o.uid,
			Since: metav1.NewTime(d.in.Now), Pending: true, KeyAdded: o.keyAdded,
		}
		return true, true
	case claim.Pending:
		return true, true
	default:
		return d.takenOff(key, claim, o)
	}
	return false, false
}

// takenOff is about a label that somebody else took off.
func (d *decision) takenOff(key string, claim v1alpha1.Claim, o object) (set, act bool) {
	claim.Removed = min(claim.Removed+1, maxRemoved)
	claim.Pending = claim.Removed < maxRemoved
	claim.KeyAdded = o.keyAdded
	d.claims[key] = claim
	if claim.Pending {
		return true, true
	}
	remedy := fmt.Sprintf("Add the label %s=%s where the configuration comes from.", v1alpha1.ClaimLabel, v1alpha1.ClaimValue)
	if o.kind == configMap {
		remedy = fmt.Sprintf("Add it where the ConfigMap comes from: config.webhookLabels of Kyverno's Helm chart with %s: %s.",
			v1alpha1.ClaimLabel, v1alpha1.ClaimValue)
	}
	d.note(key, v1alpha1.FindingClaimRemoved, "The label was taken off twice and is not set again. "+remedy)
	return false, false
}

func (d *decision) note(key, reason, message string) {
	d.notes[key] = v1alpha1.Finding{Reason: reason, Message: message}
}

// forgetGone drops the claims on configurations that no longer exist. One of the same name that was created anew has another uid.
func (d *decision) forgetGone() {
	exists := map[string]bool{}
	for _, a := range d.all {
		exists[a.key()] = !a.kyverno() // a claim on a configuration that is Kyverno's now has gone with its writes
	}
	maps.DeleteFunc(d.claims, func(key string, c v1alpha1.Claim) bool { return c.Kind != configMap && !exists[key] })
}
