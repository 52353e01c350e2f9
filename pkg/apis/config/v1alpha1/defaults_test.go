// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/config/v1alpha1"
	guardv1alpha1 "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

func TestDefaults(t *testing.T) {
	t.Run("everything that is not set gets the documented default", func(t *testing.T) {
		config := &v1alpha1.ControllerConfiguration{}
		v1alpha1.SetObjectDefaults_ControllerConfiguration(config)
		NewWithT(t).Expect(config).To(Equal(&v1alpha1.ControllerConfiguration{
			HibernationConstraint: new(guardv1alpha1.ConstraintLift),
			Care:                  &v1alpha1.Care{SyncPeriod: &metav1.Duration{Duration: 5 * time.Minute}},
			ShootClient: &v1alpha1.ShootClient{
				Timeout: &metav1.Duration{Duration: 5 * time.Second}, QPS: new(float32(50)), Burst: new(int32(100)),
				TokenPatience: &metav1.Duration{Duration: 6 * time.Second}, AdminFallback: new(true),
			},
		}))
	})
	t.Run("what is set is kept", func(t *testing.T) {
		config := &v1alpha1.ControllerConfiguration{
			HibernationConstraint: new(guardv1alpha1.ConstraintLeave),
			Care:                  &v1alpha1.Care{SyncPeriod: &metav1.Duration{Duration: time.Hour}},
			ShootClient: &v1alpha1.ShootClient{
				Timeout: &metav1.Duration{Duration: time.Second}, QPS: new(float32(5)), Burst: new(int32(10)),
				TokenPatience: &metav1.Duration{}, AdminFallback: new(false),
			},
		}
		before := config.DeepCopy()
		v1alpha1.SetObjectDefaults_ControllerConfiguration(config)
		NewWithT(t).Expect(config).To(Equal(before))
	})
}
