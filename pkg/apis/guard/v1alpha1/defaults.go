// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetDefaults_GuardConfig sets the mode, the stabilization, what is done about the hibernation constraint, and the parts that
// have defaults of their own.
func SetDefaults_GuardConfig(obj *GuardConfig) {
	setDefault(&obj.Mode, ModeGuard)
	setDefault(&obj.OpenTimeouts, OpenTimeouts{})
	setDefault(&obj.Stabilization, metav1.Duration{Duration: 20 * time.Second})
	setDefault(&obj.WakingUp, WakingUp{})
	setDefault(&obj.GoingDown, GoingDown{})
	setDefault(&obj.HibernationConstraint, ConstraintLift)
	setDefault(&obj.Kyverno, Kyverno{})
}

// SetDefaults_Kyverno sets whether Kyverno's webhookLabels are managed.
func SetDefaults_Kyverno(obj *Kyverno) {
	setDefault(&obj.ManageWebhookLabels, true)
}

// SetDefaults_OpenTimeouts sets the timeouts of open hooks.
func SetDefaults_OpenTimeouts(obj *OpenTimeouts) {
	setDefault(&obj.Mutating, 1)
	setDefault(&obj.Validating, 3)
}

// SetDefaults_WakingUp sets the waking-up deadline and what follows it.
func SetDefaults_WakingUp(obj *WakingUp) {
	setDefault(&obj.Deadline, metav1.Duration{Duration: 30 * time.Minute})
	setDefault(&obj.AfterDeadline, AfterDeadlineKeepOpen)
}

// SetDefaults_GoingDown sets the going-down deadline.
func SetDefaults_GoingDown(obj *GoingDown) {
	setDefault(&obj.Deadline, metav1.Duration{Duration: time.Hour})
}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
