// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"
)

// Result is the content of out/demo.json. All durations are in seconds.
type Result struct {
	// Finished is when the demo ended.
	Finished time.Time `json:"finished"`
	// Promises are what the demo is there to show, and whether it did.
	Promises []Promise `json:"promises"`
	// WithoutGuard is the first run, WithGuard the second.
	WithoutGuard WithoutGuard `json:"withoutGuard"`
	WithGuard    WithGuard    `json:"withGuard"`
}

// WithoutGuard is what happened without the extension.
type WithoutGuard struct {
	// Deadlocked: no node was Ready within deadlockAfter of the API server's start, and the guarded run needed less than
	// half of that.
	Deadlocked bool `json:"deadlocked"`
	Run
}

// WithGuard is what happened with the extension.
type WithGuard struct {
	Run
	// Restored counts the hooks of OpenWhenAPIStopped by who wrote their original last.
	Restored Restored `json:"restored"`
	// OriginalsLost counts hooks that do not have the failure policy and timeout of before, or are gone.
	OriginalsLost int `json:"originalsLost"`
	// OtherFieldsChanged counts other fields that are not as before, and writes of the guard that changed any. A caBundle
	// does not count if only its owner wrote it.
	OtherFieldsChanged int `json:"otherFieldsChanged"`
	// Leftovers counts what the guard left in webhook configurations (annotation, managedFields) and on record.
	Leftovers int `json:"leftovers"`
	// Differences tells what the three counters are about.
	Differences []string `json:"differences"`
	// WritesPerConfiguration counts what the guard sent from the begin of the sleep to the end.
	WritesPerConfiguration Writes `json:"writesPerConfiguration"`
	// LastProcessToLastIgnore is the time from the end of Kyverno's last process to the commit of the last of its hooks
	// as open; 0 if all were open before.
	LastProcessToLastIgnore float64 `json:"lastKyvernoProcessToLastIgnoreSeconds"`
	// Access is how the guard got at the two clusters.
	Access Access `json:"access"`
	// Policies is what Kyverno's policies do after the wake-up.
	Policies Policies `json:"policies"`
}

// Access is how the guard got at the two clusters: on the seed with the rights of its chart, in the Shoot with those of its
// ManagedResource.
type Access struct {
	// TokensExpired says that the tokens for the Shoot, the guard's and Gardener's own, had expired when the wake-up began.
	TokensExpired bool `json:"tokensExpired"`
	// Wrong are requests of the guard that were refused for lack of rights or for a token that should have been good, and
	// requests by Gardener's own access outside of the lifecycle call of a transition.
	Wrong []string `json:"wrong"`
}

// Run is what is known of both runs.
type Run struct {
	Sleep Sleep `json:"sleep"`
	Wake  Wake  `json:"wake"`
	// NodesReady says whether all nodes were Ready at the end, and whether there was one.
	NodesReady bool `json:"nodesReady"`
	// OpenWhenAPIStopped are the hooks that stood fail-open, with a short timeout, in etcd when the API server stopped.
	OpenWhenAPIStopped []Hook `json:"openWhenApiStopped"`
	// Seconds of each phase.
	Seconds Seconds `json:"seconds"`
}

// Sleep is the way down.
type Sleep struct {
	// Forced: it hung, and an operator's hands were needed.
	Forced bool `json:"forced"`
	// Blocked are the requests the API server refused and named a webhook for.
	Blocked []Blocked `json:"blocked"`
}

// Wake is the way up.
type Wake struct {
	// NodeReady says whether a node was Ready in time.
	NodeReady bool `json:"nodeReady"`
	// Finished says whether the wake-up flow came to its end.
	Finished bool `json:"finished"`
	// Blocked is as in Sleep.
	Blocked []Blocked `json:"blocked"`
}

// Blocked is a kind of refused request.
type Blocked struct {
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	// Text is the API server's.
	Text  string `json:"text"`
	Count int    `json:"count"`
}

// Hook names one entry of a webhook configuration.
type Hook struct {
	Kind          string `json:"kind"`
	Configuration string `json:"configuration"`
	Hook          string `json:"hook"`
}

// Restored counts hooks.
type Restored struct {
	ByGuard int `json:"byGuard"`
	ByOwner int `json:"byOwner"`
}

// Writes counts write requests, refused ones included.
type Writes struct {
	Max  int            `json:"max"`
	Each map[string]int `json:"each"`
}

// Policies is what became of two pods.
type Policies struct {
	ViolatingPodDenied bool   `json:"violatingPodDenied"`
	Text               string `json:"text"` // the API server's
	GoodPodAdmitted    bool   `json:"goodPodAdmitted"`
}

// Seconds of each phase. Those that were not reached are 0.
type Seconds struct {
	// Prepare is until the Shoot was awake with its policies.
	Prepare float64 `json:"prepare"`
	// Sleep is from the order to sleep to the end of the API server; SleepForced the part of it that needed force.
	Sleep       float64 `json:"sleep"`
	SleepForced float64 `json:"sleepForced"`
	// Asleep is until the order to wake up.
	Asleep float64 `json:"asleep"`
	// WakeToAPIServer is from the order to wake up to an API server that is ready.
	WakeToAPIServer float64 `json:"wakeToApiServer"`
	// From the ready API server on: the first Ready node, the end of the flow, the last hook at its original, and nothing
	// left to do for the guard.
	APIServerToNodeReady float64 `json:"apiServerToNodeReady"`
	APIServerToFlowDone  float64 `json:"apiServerToFlowDone"`
	APIServerToRestored  float64 `json:"apiServerToRestored"`
	APIServerToSettled   float64 `json:"apiServerToSettled"`
	// Total is that of the run, clean-up included.
	Total float64 `json:"total"`
}

// seconds rounds to milliseconds; a time that was not reached counts 0.
func seconds(from, to time.Time) float64 {
	if from.IsZero() || to.IsZero() {
		return 0
	}
	return math.Round(to.Sub(from).Seconds()*1000) / 1000
}

// write puts the result into a file, in one step.
func (r *Result) write(path string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("failed to encode result: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("failed to create directory: %w", err)
	}
	fresh := path + ".new"
	if err := os.WriteFile(fresh, append(content, '\n'), 0o644); err != nil { // #nosec G306 -- for everybody
		return fmt.Errorf("failed to write result: %w", err)
	}
	if err := os.Rename(fresh, path); err != nil {
		return fmt.Errorf("failed to write result: %w", err)
	}
	return nil
}
