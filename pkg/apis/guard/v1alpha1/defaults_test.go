// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

func duration(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

func TestDefaults(t *testing.T) {
	want := func() *v1alpha1.GuardConfig {
		return &v1alpha1.GuardConfig{
			Mode:          new(v1alpha1.ModeGuard),
			OpenTimeouts:  &v1alpha1.OpenTimeouts{Mutating: new(int32(1)), Validating: new(int32(3))},
			Stabilization: duration(20 * time.Second),
			WakingUp:      &v1alpha1.WakingUp{Deadline: duration(30 * time.Minute), AfterDeadline: new(v1alpha1.AfterDeadlineKeepOpen)},
			GoingDown:     &v1alpha1.GoingDown{Deadline: duration(time.Hour)},

			HibernationConstraint: new(v1alpha1.ConstraintLift),
			Kyverno:               &v1alpha1.Kyverno{ManageWebhookLabels: new(true)},
		}
	}
	t.Run("everything that is not set gets the documented default", func(t *testing.T) {
		config := &v1alpha1.GuardConfig{}
		v1alpha1.SetObjectDefaults_GuardConfig(config)
		NewWithT(t).Expect(config).To(Equal(want()))
	})
	t.Run("a part that is set gets the defaults of what it leaves out", func(t *testing.T) {
		config := &v1alpha1.GuardConfig{WakingUp: &v1alpha1.WakingUp{Deadline: duration(time.Hour)}, OpenTimeouts: &v1alpha1.OpenTimeouts{Mutating: new(int32(2))}}
		v1alpha1.SetObjectDefaults_GuardConfig(config)
		expected := want()
		expected.WakingUp.Deadline, expected.OpenTimeouts.Mutating = duration(time.Hour), new(int32(2))
		NewWithT(t).Expect(config).To(Equal(expected))
	})
	t.Run("what is set is kept, zero too", func(t *testing.T) {
		config := &v1alpha1.GuardConfig{
			Mode: new(v1alpha1.ModeReport), Stabilization: duration(0),
			OpenTimeouts: &v1alpha1.OpenTimeouts{Mutating: new(int32(5)), Validating: new(int32(6))},
			WakingUp:     &v1alpha1.WakingUp{Deadline: duration(time.Minute), AfterDeadline: new(v1alpha1.AfterDeadlineRestore)},
			GoingDown:    &v1alpha1.GoingDown{Deadline: duration(10 * time.Minute)},

			HibernationConstraint: new(v1alpha1.ConstraintLeave),
			Kyverno:               &v1alpha1.Kyverno{ManageWebhookLabels: new(false)},
		}
		before := config.DeepCopy()
		v1alpha1.SetObjectDefaults_GuardConfig(config)
		NewWithT(t).Expect(config).To(Equal(before))
	})
}
