// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package phase tells from plain facts where a Shoot stands between sleeping and waking. It asks nobody anything.
package phase

import (
	"strconv"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
)

// Phase of a Shoot.
type Phase string

// The phases, in the order in which Of tries them.
const (
	// Moving: the control plane is migrated. Nothing is written.
	Moving Phase = "Moving"
	// Deleting: the Shoot is deleted. Nothing is written; gardenlet removes all webhook configurations.
	Deleting Phase = "Deleting"
	// Asleep: the kube-apiserver is scaled down. The record stays, every connection is closed.
	Asleep Phase = "Asleep"
	// Unreachable: the kube-apiserver should run but does not answer. Nothing is written, it is tried again.
	Unreachable Phase = "Unreachable"
	// GoingDown: the Shoot is being hibernated. Hooks are opened, and held as their backends vanish.
	GoingDown Phase = "GoingDown"
	// WakingUp: the Shoot is being woken up. Hooks are held open, and restored as their backends come back.
	WakingUp Phase = "WakingUp"
	// Awake: everything else.
	Awake Phase = "Awake"
)

// Input are the facts that decide the phase.
type Input struct {
	// LastOperationMigrate says that the Shoot's last operation is of the type Migrate.
	LastOperationMigrate bool
	// OperationAnnotation is the value of gardener.cloud/operation on the Extension; empty if there is none.
	OperationAnnotation string
	// ShootDeleting says that the Shoot has a deletionTimestamp.
	ShootDeleting bool

	// DeploymentFound says that the kube-apiserver Deployment exists in the Shoot's namespace of the seed.
	DeploymentFound bool
	// Replicas is spec.replicas of that Deployment.
	Replicas int32
	// APIAnswers says that the Shoot's API server answers us.
	APIAnswers bool

	// HibernationEnabled is spec.hibernation.enabled of the Shoot.
	HibernationEnabled bool
	// IsHibernated is status.isHibernated of the Shoot.
	IsHibernated bool

	// OnRecord says that the record holds hooks or an unfinished cycle.
	OnRecord bool
	// TransitionCall says that gardenlet calls us in a running flow, see IsTransitionCall.
	TransitionCall bool
	// NoNodes says that the Shoot has no Node object.
	NoNodes bool
	// DeadlinePassed says that the deadline of the wake-up has passed.
	DeadlinePassed bool
}

// Of returns the one phase in which a Shoot with these facts is: the first that applies, in the order of the constants.
// A restored control plane is not Moving: its Extension is reconciled as any other.
func Of(in Input) Phase {
	switch {
	case in.LastOperationMigrate,
		in.OperationAnnotation == v1beta1constants.GardenerOperationMigrate,
		in.OperationAnnotation == v1beta1constants.GardenerOperationWaitForState:
		return Moving
	case in.ShootDeleting:
		return Deleting
	case !in.DeploymentFound || in.Replicas == 0:
		return Asleep
	case !in.APIAnswers:
		return Unreachable
	case in.HibernationEnabled && (in.OnRecord || in.TransitionCall):
		return GoingDown
	case !in.HibernationEnabled && !in.DeadlinePassed &&
		(in.IsHibernated || in.OnRecord || (in.TransitionCall && in.NoNodes)):
		return WakingUp
	default:
		return Awake
	}
}

// callAge is how old gardenlet's request may be to count as a call of a running flow. gardenlet waits three minutes for an
// Extension by default and then repeats the flow with a new timestamp. One from a clock ahead of ours is a call, too: otherwise it
// would be answered with success and nothing opened.
const callAge = 10 * time.Minute

// IsTransitionCall tells whether a reconciliation of the Extension at the given time is gardenlet's word that a flow runs:
// the Shoot is not ignored, its last operation is Processing, and gardenlet asked for the reconciliation within the last
// ten minutes. Reconciliations that the extension library begins on its own, at a start or after an error, are none.
func IsTransitionCall(shoot *gardencorev1beta1.Shoot, ex *extensionsv1alpha1.Extension, now time.Time) bool {
	if shoot == nil || ex == nil {
		return false
	}
	// gardenlet reads the annotation in the same way.
	if ignored, _ := strconv.ParseBool(shoot.Annotations[v1beta1constants.ShootIgnore]); ignored {
		return false
	}
	if op := shoot.Status.LastOperation; op == nil || op.State != gardencorev1beta1.LastOperationStateProcessing {
		return false
	}
	requested, err := time.Parse(time.RFC3339Nano, ex.Annotations[v1beta1constants.GardenerTimestamp])
	if err != nil {
		return false
	}
	return now.Sub(requested) < callAge
}
