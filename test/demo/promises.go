// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

const (
	// deadlockAfter is how long nodes may take after the API server's start: with real machines gardenlet would wait
	// longer, but here they take seconds.
	deadlockAfter = 3 * time.Minute
	// openWithin bounds the time in which the last process of Kyverno has ended and a hook of it is still fail-closed.
	openWithin = 3 * time.Second
)

//go:embed expected.yaml
var expectedYAML []byte

// expectedHooks are the hooks that have to be open when the API server stops.
func expectedHooks() ([]Hook, error) {
	var hooks []Hook
	if err := yaml.UnmarshalStrict(expectedYAML, &hooks); err != nil {
		return nil, fmt.Errorf("failed to decode expected.yaml: %w", err)
	}
	return hooks, nil
}

// Promise is one thing the demo is there to show.
type Promise struct {
	Promise string `json:"promise"`
	Kept    bool   `json:"kept"`
	// Found is what speaks against it; empty if it was kept.
	Found string `json:"found,omitempty"`
}

// deadlocked says whether the Shoot without the guard did not wake up although there was plenty of time.
func deadlocked(r *Result) bool {
	with := r.WithGuard.Seconds.APIServerToNodeReady
	return !r.WithoutGuard.Wake.NodeReady && r.WithGuard.Wake.NodeReady && with < deadlockAfter.Seconds()/2
}

// judge says which promises were kept.
func judge(r *Result, expected []Hook) []Promise {
	without, with := &r.WithoutGuard, &r.WithGuard
	missing, surplus := compare(expected, with.OpenWhenAPIStopped)
	restored := with.Restored.ByGuard + with.Restored.ByOwner
	return []Promise{
		promise("without the guard, the Shoot does not wake up", without.Deadlocked,
			"without: node Ready %t; with: node Ready %t, %.1f s after the API server's start",
			without.Wake.NodeReady, with.Wake.NodeReady, with.Seconds.APIServerToNodeReady),
		promise("without the guard, the API server says what it refuses",
			len(without.Sleep.Blocked) > 0 && len(without.Wake.Blocked) > 0,
			"%d kinds of refusals during the sleep, %d during the wake-up", len(without.Sleep.Blocked), len(without.Wake.Blocked)),
		promise("with the guard, the Shoot falls asleep by itself", !with.Sleep.Forced, "it had to be forced"),
		promise("with the guard, all hooks in scope are open when the API server stops", len(missing)+len(surplus) == 0,
			"not open: %s; unexpected: %s", describe(missing), describe(surplus)),
		promise("with the guard, they are open in time", with.LastProcessToLastIgnore <= openWithin.Seconds(),
			"the last one %.1f s after the end of Kyverno's last process", with.LastProcessToLastIgnore),
		promise("with the guard, the Shoot wakes up by itself", with.NodesReady && with.Wake.Finished,
			"nodes Ready %t, flow finished %t", with.NodesReady, with.Wake.Finished),
		promise("with the guard, every hook has its original back", with.OriginalsLost == 0 && restored == len(expected),
			"%d lost, %d of %d seen restored: %s", with.OriginalsLost, restored, len(expected), strings.Join(with.Differences, "; ")),
		promise("with the guard, no other field is changed", with.OtherFieldsChanged == 0,
			"%d changed: %s", with.OtherFieldsChanged, strings.Join(with.Differences, "; ")),
		promise("with the guard, nothing of it is left behind", with.Leftovers == 0,
			"%d left: %s", with.Leftovers, strings.Join(with.Differences, "; ")),
		promise("with the guard, all of that is done with the rights it was granted, after a sleep that outlived its token",
			with.Access.TokensExpired && len(with.Access.Wrong) == 0,
			"tokens expired %t; %s", with.Access.TokensExpired, strings.Join(with.Access.Wrong, "; ")),
		promise("after the wake-up, the policies bite", with.Policies.ViolatingPodDenied && with.Policies.GoodPodAdmitted,
			"violating pod denied %t, good pod admitted %t: %s",
			with.Policies.ViolatingPodDenied, with.Policies.GoodPodAdmitted, with.Policies.Text),
	}
}

func promise(text string, kept bool, found string, args ...any) Promise {
	if kept {
		return Promise{Promise: text, Kept: true}
	}
	return Promise{Promise: text, Found: fmt.Sprintf(found, args...)}
}

// compare returns what is only in expected and what is only in found.
func compare(expected, found []Hook) (missing, surplus []Hook) {
	without := func(all, others []Hook) []Hook {
		return slices.DeleteFunc(slices.Clone(all), func(h Hook) bool { return slices.Contains(others, h) })
	}
	return without(expected, found), without(found, expected)
}

func describe(hooks []Hook) string {
	if len(hooks) == 0 {
		return "none"
	}
	var names []string
	for _, h := range hooks {
		names = append(names, h.String())
	}
	return strings.Join(names, ", ")
}

// String is short: Kyverno's configurations all end alike.
func (h Hook) String() string {
	return strings.TrimSuffix(h.Configuration, "-webhook-cfg") + " / " + h.Hook
}
