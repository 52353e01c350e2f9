// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	guardv1alpha1 "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

// SetDefaults_ControllerConfiguration sets the parts that have defaults of their own.
func SetDefaults_ControllerConfiguration(obj *ControllerConfiguration) {
	setDefault(&obj.HibernationConstraint, guardv1alpha1.ConstraintLift)
	setDefault(&obj.Care, Care{})
	setDefault(&obj.ShootClient, ShootClient{})
}

// SetDefaults_Care sets the time between two passes over an awake Shoot.
func SetDefaults_Care(obj *Care) {
	setDefault(&obj.SyncPeriod, metav1.Duration{Duration: 5 * time.Minute})
}

// SetDefaults_ShootClient sets the limits of the clients of the Shoots' API servers.
func SetDefaults_ShootClient(obj *ShootClient) {
	setDefault(&obj.Timeout, metav1.Duration{Duration: 5 * time.Second})
	setDefault(&obj.QPS, 50)
	setDefault(&obj.Burst, 100)
	setDefault(&obj.TokenPatience, metav1.Duration{Duration: 6 * time.Second})
	setDefault(&obj.AdminFallback, true)
}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
