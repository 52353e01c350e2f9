// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/access"
)

func TestUsesAreExcusedOnlyWhereTheyWereToBeExpected(t *testing.T) {
	begin := time.Now()
	after := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	write := func(at int, user, verb, group, resource, namespace, name string, object map[string]any) auditv1.Event {
		e := auditv1.Event{
			Stage: auditv1.StageResponseComplete, Verb: verb, User: authenticationv1.UserInfo{Username: user},
			RequestReceivedTimestamp: metav1.NewMicroTime(after(at)), StageTimestamp: metav1.NewMicroTime(after(at)),
			ObjectRef:      &auditv1.ObjectReference{APIGroup: group, Resource: resource, Namespace: namespace, Name: name},
			ResponseStatus: &metav1.Status{Code: 200},
		}
		if object != nil {
			raw, err := json.Marshal(object)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			e.ResponseObject = &runtime.Unknown{Raw: raw}
		}
		return e
	}
	cluster := func(at int, enabled, hibernated bool) auditv1.Event {
		shoot := map[string]any{"spec": map[string]any{"hibernation": map[string]any{"enabled": enabled}}, "status": map[string]any{"isHibernated": hibernated}}
		return write(at, "gardenlet", "patch", "extensions.gardener.cloud", "clusters", "", "ns", map[string]any{"spec": map[string]any{"shoot": shoot}})
	}
	extension := func(at int, state string) auditv1.Event {
		return write(at, ControllerUser, "patch", "extensions.gardener.cloud", "extensions", "ns", "guard", map[string]any{
			"spec": map[string]any{"type": "shoot-hibernation-guard"}, "status": map[string]any{"lastOperation": map[string]any{"state": state}},
		})
	}
	token := func(at int, user string) auditv1.Event {
		return write(at, user, "patch", "", "secrets", "ns", access.SecretName, nil)
	}
	right := func(at int, verb string) auditv1.Event {
		return write(at, ResourceManagerUser, verb, "rbac.authorization.k8s.io", "clusterroles", "", access.RoleName, nil)
	}
	s := newStory(
		[]auditv1.Event{
			cluster(10, false, false), extension(11, "Processing"), extension(14, "Succeeded"),
			cluster(20, true, false), extension(21, "Processing"), extension(24, "Succeeded"),
			token(12, ResourceManagerUser), token(30, AdminUser), token(40, ResourceManagerUser),
		},
		[]auditv1.Event{right(13, "create"), right(50, "delete"), right(60, "create")})
	s.add([]time.Time{after(70)}, []turn{{after(0), false}, {after(1), true}, {after(80), false}, {after(82), true}})

	for name, test := range map[string]struct {
		use     Use
		at      int
		excused bool
	}{
		"Gardener's access in an ordinary call":         {Use{Access: AccessGardeners}, 12, false},
		"Gardener's access in the call of a transition": {Use{Access: AccessGardeners}, 22, true},
		"Gardener's access after that call":             {Use{Access: AccessGardeners}, 25, false},
		"Gardener's access, refused":                    {Use{Access: AccessGardeners, Refused: 403}, 22, false},
		"401 before there was a token":                  {Use{Refused: 401}, 11, true},
		"401 with a good token":                         {Use{Refused: 401}, 20, false},
		"401 while the token is expired":                {Use{Refused: 401}, 35, true},
		"401 just after the renewal":                    {Use{Refused: 401}, 41, true},
		"401 after the renewal":                         {Use{Refused: 401}, 45, false},
		"401 after the keys were rotated":               {Use{Refused: 401}, 75, true},
		"403 while the API server starts":               {Use{Refused: 403}, 81, true},
		"403 before the rights came":                    {Use{Refused: 403}, 12, true},
		"403 with all rights":                           {Use{Refused: 403}, 20, false},
		"403 while somebody had removed them":           {Use{Refused: 403}, 55, true},
		"403 after they came back":                      {Use{Refused: 403}, 65, false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(s.excuse(test.use, after(test.at)) != "").To(Equal(test.excused))
		})
	}
}
