// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package decide says what is to be done with one hook. It is pure: everything it depends on is an argument.
package decide

import (
	"time"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/backend"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/hook"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/scope"
)

// State of a hook as the guard sees it.
type State string

// States, in the order in which a hook usually goes through them.
const (
	// Enforced: at its own values, nothing on record.
	Enforced State = "Enforced"
	// Left: not guarded.
	Left State = "Left"
	// Open: fail-open because of the guard.
	Open State = "Open"
	// Reverted: on record and at its own values, but not given back: somebody closed it while the backend serves, as fast as
	// we open it, or without it being known whether the backend serves.
	Reverted State = "Reverted"
	// Stabilizing: open, and the backend has been ready for less than the stabilization time.
	Stabilizing State = "Stabilizing"
	// Returning: at its own values again, with something of ours left on the configuration.
	Returning State = "Returning"
	// Watched: given back less than the stabilization time ago.
	Watched State = "Watched"
	// Done: given back, nothing of ours is left.
	Done State = "Done"
	// Gone: on record, but the configuration or its entry no longer exists.
	Gone State = "Gone"
	// NotOpenable: the API server refuses to change the configuration for its own invalidity.
	NotOpenable State = "NotOpenable"
	// StillOpen: open past the waking-up deadline.
	StillOpen State = "StillOpen"
	// OriginalUnknown: open because of the guard, with no trace of its original.
	OriginalUnknown State = "OriginalUnknown"
	// RestoreFailed: given back three times, and each time open again because of a whole-list writer or a backend that went.
	RestoreFailed State = "RestoreFailed"
)

// Action on a hook. What is in Decision.Record is on durable record before the hook is opened.
type Action string

const (
	// None changes nothing.
	None Action = ""
	// OpenIt sets the hook to Decision.To.
	OpenIt Action = "Open"
	// RestoreIt sets the hook from Decision.From to Decision.To.
	RestoreIt Action = "Restore"
	// ReleaseIt removes what is left of ours from the configuration.
	ReleaseIt Action = "Release"
)

const (
	// maxReopens is how often a hook is opened or restored again after it was given back in a cycle (design section 5).
	maxReopens = 3
	// probeInterval is the longest time between two looks at an open hook before the deadline (design section 5): a mended
	// certificate or tunnel makes no event.
	probeInterval = 10 * time.Second
	// goneAfterReady is how long a vanished entry is kept on record once its backend is ready: Kyverno up to 1.18 publishes
	// empty lists for 10 to 20 s at leader start (github.com/kyverno/kyverno issues 11560, 16281).
	goneAfterReady = 2 * time.Minute
	// maxBackoff bounds the time between two opens of a configuration whose owner reverts them (design R7).
	maxBackoff = 15 * time.Second
	// fightWindow and fightLimit: more opens than this are told as RevertedByOwner (design R7).
	fightWindow = 10 * time.Minute
	fightLimit  = 5
	// longestGap is the longest time between two verdicts in which a ready backend counts as having been ready all the time.
	// Open hooks are looked at every probeInterval; a longer gap means that nobody looked.
	longestGap = time.Minute
)

// Settings are the parts of the configuration that decisions depend on.
type Settings struct {
	// Report opens nothing.
	Report bool
	// OpenValidating and OpenMutating are timeouts in seconds.
	OpenValidating, OpenMutating int32
	// Stabilization as in GuardConfig.
	Stabilization time.Duration
	// RestoreByForce restores hooks at the waking-up deadline whatever their backend says.
	RestoreByForce bool
}

// Shoot is what all decisions of one pass share.
type Shoot struct {
	// Now is the time of the pass.
	Now time.Time
	// Phase of the Shoot: GoingDown, WakingUp or Awake. In the others nothing is looked at, so nothing is decided.
	Phase phase.Phase
	// Begun is when the cycle on record began; zero without one. What was remembered before does not count.
	Begun time.Time
	// Call says that this pass is the lifecycle call of a transition.
	Call bool
	// MayOpenNew says that hooks which are not on record may be opened by the loop.
	MayOpenNew bool
	// DeadlinePassed says that the waking-up deadline has passed.
	DeadlinePassed bool
	// GiveUp says that the going-down deadline has passed and no operation runs.
	GiveUp bool
	// IsHibernated is the Cluster's word.
	IsHibernated bool
	// Settings in force.
	Settings Settings
}

// overdue says whether the Shoot woke up and the deadline of that has passed.
func (in Shoot) overdue() bool { return in.DeadlinePassed && in.Phase != phase.GoingDown }

// probe is after what time a hook that is not given back is looked at; past the deadline the care of an awake Shoot does.
func (in Shoot) probe() time.Duration {
	if in.overdue() {
		return 0
	}
	return probeInterval
}

// Subject is one hook with all that is known of it.
type Subject struct {
	// Configuration that holds the hook; for a vanished hook the zero value or the configuration without the entry.
	Configuration hook.Configuration
	// Hook is nil when it is on record but exists no longer.
	Hook *hook.Hook
	// ConfigurationExists says whether a configuration with the recorded uid exists.
	ConfigurationExists bool
	// Scope of the hook.
	Scope scope.Verdict
	// Verdict on the backend; nil when it was not asked for.
	Verdict *backend.Verdict
	// Record is nil when the hook is not on record.
	Record *v1alpha1.HookRecord
	// Annotated is the original from our annotation, nil when there is none or it is not valid.
	Annotated *v1alpha1.Original
	// Memory of the hook and of its configuration, from the pass before.
	Memory Memory
	// Opens of its configuration.
	Opens Opens
}

// Decision on one hook.
type Decision struct {
	// State of the hook.
	State State
	// Action to take.
	Action Action
	// Record is what must be on record from now on; nil when nothing.
	Record *v1alpha1.HookRecord
	// From and To are the values before and after Action.
	From, To hook.Values
	// Reason in one word and Message for a person.
	Reason, Message string
	// NextCheck is after what time the hook must be looked at again at the latest; zero: an event will tell.
	NextCheck time.Duration
	// Memory for the next pass.
	Memory Memory
	// BackendWent says that the backend went, or one of its pods: opens of its configuration may follow one another fast again.
	BackendWent bool
}
