// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	. "github.com/onsi/gomega/gstruct"
	gomegatypes "github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/config/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/config/validation"
	guardv1alpha1 "github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
)

func refused(path, remedy string) gomegatypes.GomegaMatcher {
	return ConsistOf(PointTo(MatchFields(IgnoreExtras, Fields{
		"Type": Equal(field.ErrorTypeInvalid), "Field": Equal(path), "Detail": ContainSubstring(remedy),
	})))
}

func TestValidateControllerConfiguration(t *testing.T) {
	care := func(d time.Duration) v1alpha1.ControllerConfiguration {
		return v1alpha1.ControllerConfiguration{Care: &v1alpha1.Care{SyncPeriod: &metav1.Duration{Duration: d}}}
	}
	timeout := func(d time.Duration) v1alpha1.ControllerConfiguration {
		return v1alpha1.ControllerConfiguration{ShootClient: &v1alpha1.ShootClient{Timeout: &metav1.Duration{Duration: d}}}
	}
	patience := func(d time.Duration) v1alpha1.ControllerConfiguration {
		return v1alpha1.ControllerConfiguration{ShootClient: &v1alpha1.ShootClient{TokenPatience: &metav1.Duration{Duration: d}}}
	}
	rate := func(qps float32, burst int32) v1alpha1.ControllerConfiguration {
		return v1alpha1.ControllerConfiguration{ShootClient: &v1alpha1.ShootClient{QPS: &qps, Burst: &burst}}
	}
	var defaults v1alpha1.ControllerConfiguration
	v1alpha1.SetObjectDefaults_ControllerConfiguration(&defaults)

	for name, tc := range map[string]struct {
		config v1alpha1.ControllerConfiguration
		want   gomegatypes.GomegaMatcher
	}{
		"the defaults are valid":               {defaults, BeEmpty()},
		"nothing at all is valid":              {v1alpha1.ControllerConfiguration{}, BeEmpty()},
		"empty parts are valid":                {v1alpha1.ControllerConfiguration{Care: &v1alpha1.Care{}, ShootClient: &v1alpha1.ShootClient{}}, BeEmpty()},
		"a sync period of 10s is valid":        {care(10 * time.Second), BeEmpty()},
		"a shorter sync period is refused":     {care(10*time.Second - 1), refused("care.syncPeriod", "at least 10s")},
		"a timeout of 1s is valid":             {timeout(time.Second), BeEmpty()},
		"a shorter timeout is refused":         {timeout(time.Second - 1), refused("shootClient.timeout", "at least 1s")},
		"a timeout of 15s is valid":            {timeout(15 * time.Second), BeEmpty()},
		"a longer timeout is refused":          {timeout(15*time.Second + 1), refused("shootClient.timeout", "at most 15s")},
		"few requests are valid":               {rate(0.1, 1), BeEmpty()},
		"no requests per second are refused":   {rate(0, 1), refused("shootClient.qps", "more than 0")},
		"a negative rate is refused":           {rate(-1, 1), refused("shootClient.qps", "more than 0")},
		"no request at once is refused":        {rate(1, 0), refused("shootClient.burst", "at least 1")},
		"no patience for a token is valid":     {patience(0), BeEmpty()},
		"patience of 10s is valid":             {patience(10 * time.Second), BeEmpty()},
		"negative patience is refused":         {patience(-1), refused("shootClient.tokenPatience", "at least 0s")},
		"more patience is refused":             {patience(10*time.Second + 1), refused("shootClient.tokenPatience", "at most 10s")},
		"leaving the constraint is valid":      {v1alpha1.ControllerConfiguration{HibernationConstraint: new(guardv1alpha1.ConstraintLeave)}, BeEmpty()},
		"anything else is not supported":       {v1alpha1.ControllerConfiguration{HibernationConstraint: new(guardv1alpha1.ConstraintHandling("lift"))}, ContainElement(HaveField("Field", "hibernationConstraint"))},
		"the client is checked after the care": {v1alpha1.ControllerConfiguration{Care: care(0).Care, ShootClient: timeout(0).ShootClient}, HaveLen(2)},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(validation.ValidateControllerConfiguration(&tc.config, nil)).To(tc.want)
		})
	}
}
