// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package phase_test

import (
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/phase"
)

// applies restates the list on its own: for each phase everything that must and must not be, without regard to any order.
var applies = map[phase.Phase]func(f facts) bool{
	phase.Moving:   func(f facts) bool { return f.moving },
	phase.Deleting: func(f facts) bool { return !f.moving && f.deleting },
	phase.Asleep:   func(f facts) bool { return !f.moving && !f.deleting && !f.shouldRun },
	phase.Unreachable: func(f facts) bool {
		return !f.moving && !f.deleting && f.shouldRun && !f.APIAnswers
	},
	phase.GoingDown: func(f facts) bool {
		return f.reachable() && f.HibernationEnabled && (f.OnRecord || f.TransitionCall)
	},
	phase.WakingUp: func(f facts) bool {
		if !f.reachable() || f.HibernationEnabled || f.DeadlinePassed {
			return false
		}
		return f.IsHibernated || f.OnRecord || f.TransitionCall && f.NoNodes
	},
	phase.Awake: func(f facts) bool {
		if !f.reachable() {
			return false
		}
		if f.HibernationEnabled {
			return !f.OnRecord && !f.TransitionCall
		}
		quiet := !f.IsHibernated && !f.OnRecord && (!f.TransitionCall || !f.NoNodes)
		return quiet || f.DeadlinePassed
	},
}

type facts struct {
	phase.Input
	moving, deleting, shouldRun bool
}

func (f facts) reachable() bool { return !f.moving && !f.deleting && f.shouldRun && f.APIAnswers }

func TestOfEveryCombination(t *testing.T) {
	g := NewWithT(t)
	seen := map[phase.Phase]int{}
	const booleans = 10
	for _, annotation := range []string{"", "reconcile", "restore", "migrate", "wait-for-state", "keepalive"} {
		for _, replicas := range []int32{0, 1, 3} {
			for bits := range 1 << booleans {
				bit := func(i int) bool { return bits>>i&1 == 1 }
				in := phase.Input{
					LastOperationMigrate: bit(0), OperationAnnotation: annotation, ShootDeleting: bit(1),
					DeploymentFound: bit(2), Replicas: replicas, APIAnswers: bit(3),
					HibernationEnabled: bit(4), IsHibernated: bit(5),
					OnRecord: bit(6), TransitionCall: bit(7), NoNodes: bit(8), DeadlinePassed: bit(9),
				}
				f := facts{
					Input:     in,
					moving:    bit(0) || annotation == "migrate" || annotation == "wait-for-state",
					deleting:  bit(1),
					shouldRun: bit(2) && replicas > 0,
				}
				var want []phase.Phase
				for name, applies := range applies {
					if applies(f) {
						want = append(want, name)
					}
				}
				got := phase.Of(in)
				if len(want) != 1 || want[0] != got {
					t.Fatalf("%+v: got %s, want exactly one of %v", in, got, want)
				}
				seen[got]++
			}
		}
	}
	g.Expect(seen).To(HaveLen(len(applies)), "every phase occurs")
}

func TestOf(t *testing.T) {
	awake := phase.Input{DeploymentFound: true, Replicas: 1, APIAnswers: true}
	for name, tc := range map[string]struct {
		change func(*phase.Input)
		want   phase.Phase
	}{
		"a quiet Shoot is awake": {func(*phase.Input) {}, phase.Awake},
		"hibernation enabled without a call and without a record is no transition yet": {
			func(in *phase.Input) { in.HibernationEnabled = true }, phase.Awake},
		"a call with hibernation enabled goes down": {
			func(in *phase.Input) { in.HibernationEnabled, in.TransitionCall = true, true }, phase.GoingDown},
		"a hibernation that failed half-way keeps going down as long as something is on record": {
			func(in *phase.Input) { in.HibernationEnabled, in.OnRecord = true, true }, phase.GoingDown},
		"the waking-up deadline ends no hibernation": {
			func(in *phase.Input) { in.HibernationEnabled, in.OnRecord, in.DeadlinePassed = true, true, true }, phase.GoingDown},
		"hibernation that was cancelled half-way wakes up": {
			func(in *phase.Input) { in.OnRecord = true }, phase.WakingUp},
		"a Shoot that still says that it is hibernated wakes up, also without record and call": {
			func(in *phase.Input) { in.IsHibernated = true }, phase.WakingUp},
		"a call without any node wakes up": {
			func(in *phase.Input) { in.TransitionCall, in.NoNodes = true, true }, phase.WakingUp},
		"a call of an ordinary reconciliation, with nodes, is no wake-up": {
			func(in *phase.Input) { in.TransitionCall = true }, phase.Awake},
		"past the deadline the Shoot is awake with hooks open": {
			func(in *phase.Input) { in.OnRecord, in.IsHibernated, in.DeadlinePassed = true, true, true }, phase.Awake},
		"a Shoot without its API server sleeps, whatever is on record": {
			func(in *phase.Input) { in.Replicas, in.OnRecord, in.IsHibernated = 0, true, true }, phase.Asleep},
		"a restored control plane is not moving": {
			func(in *phase.Input) { in.OperationAnnotation, in.OnRecord = "restore", true }, phase.WakingUp},
		"waiting for its state is moving": {
			func(in *phase.Input) { in.OperationAnnotation, in.OnRecord = "wait-for-state", true }, phase.Moving},
		"a Shoot that is deleted while it is migrated is moving": {
			func(in *phase.Input) { in.LastOperationMigrate, in.ShootDeleting = true, true }, phase.Moving},
	} {
		t.Run(name, func(t *testing.T) {
			in := awake
			tc.change(&in)
			NewWithT(t).Expect(phase.Of(in)).To(Equal(tc.want))
		})
	}
}

func TestIsTransitionCall(t *testing.T) {
	now := time.Date(2026, 8, 24, 12, 0, 0, 0, time.UTC)
	at := func(age time.Duration) string { return now.Add(-age).Format(time.RFC3339Nano) }
	for name, tc := range map[string]struct {
		change func(*gardencorev1beta1.Shoot, *extensionsv1alpha1.Extension)
		want   bool
	}{
		"a fresh request of a running flow is a call": {func(*gardencorev1beta1.Shoot, *extensionsv1alpha1.Extension) {}, true},
		"a request just younger than ten minutes is a call": {func(_ *gardencorev1beta1.Shoot, ex *extensionsv1alpha1.Extension) {
			ex.Annotations["gardener.cloud/timestamp"] = at(10*time.Minute - time.Nanosecond)
		}, true},
		"a request of ten minutes ago is none": {func(_ *gardencorev1beta1.Shoot, ex *extensionsv1alpha1.Extension) {
			ex.Annotations["gardener.cloud/timestamp"] = at(10 * time.Minute)
		}, false},
		"a request from a clock that is ahead of ours is a call": {func(_ *gardencorev1beta1.Shoot, ex *extensionsv1alpha1.Extension) {
			ex.Annotations["gardener.cloud/timestamp"] = at(-time.Hour)
		}, true},
		"a request in another time zone without fractions is a call": {func(_ *gardencorev1beta1.Shoot, ex *extensionsv1alpha1.Extension) {
			ex.Annotations["gardener.cloud/timestamp"] = "2026-08-24T14:00:00+02:00"
		}, true},
		"without a timestamp it is none": {func(_ *gardencorev1beta1.Shoot, ex *extensionsv1alpha1.Extension) {
			ex.Annotations = nil
		}, false},
		"with an unparsable timestamp it is none": {func(_ *gardencorev1beta1.Shoot, ex *extensionsv1alpha1.Extension) {
			ex.Annotations["gardener.cloud/timestamp"] = "yesterday"
		}, false},
		"without a last operation it is none": {func(shoot *gardencorev1beta1.Shoot, _ *extensionsv1alpha1.Extension) {
			shoot.Status.LastOperation = nil
		}, false},
		"after the flow has succeeded it is none": {func(shoot *gardencorev1beta1.Shoot, _ *extensionsv1alpha1.Extension) {
			shoot.Status.LastOperation.State = gardencorev1beta1.LastOperationStateSucceeded
		}, false},
		"after the flow has stopped with an error it is none": {func(shoot *gardencorev1beta1.Shoot, _ *extensionsv1alpha1.Extension) {
			shoot.Status.LastOperation.State = gardencorev1beta1.LastOperationStateError
		}, false},
		"for an ignored Shoot it is none": {func(shoot *gardencorev1beta1.Shoot, _ *extensionsv1alpha1.Extension) {
			shoot.Annotations = map[string]string{"shoot.gardener.cloud/ignore": "true"}
		}, false},
		"for a Shoot that is not ignored any more it is a call": {func(shoot *gardencorev1beta1.Shoot, _ *extensionsv1alpha1.Extension) {
			shoot.Annotations = map[string]string{"shoot.gardener.cloud/ignore": "false"}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &gardencorev1beta1.Shoot{Status: gardencorev1beta1.ShootStatus{LastOperation: &gardencorev1beta1.LastOperation{
				Type: gardencorev1beta1.LastOperationTypeReconcile, State: gardencorev1beta1.LastOperationStateProcessing,
			}}}
			ex := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"gardener.cloud/timestamp": at(time.Second)}}}
			tc.change(shoot, ex)
			NewWithT(t).Expect(phase.IsTransitionCall(shoot, ex, now)).To(Equal(tc.want))
		})
	}

	t.Run("without a Shoot or an Extension it is none", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(phase.IsTransitionCall(nil, &extensionsv1alpha1.Extension{}, now)).To(BeFalse())
		g.Expect(phase.IsTransitionCall(&gardencorev1beta1.Shoot{}, nil, now)).To(BeFalse())
	})
}
