// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"slices"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/access"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/codec"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/apis/guard/v1alpha1"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/record"
)

const (
	gardenersUser = "system:serviceaccount:kube-system:" + v1beta1constants.SecretNameGardenerInternal
	// lag is how long the API server and the product may take to hear of a new token or right.
	lag = 2 * time.Second
)

// turn is a point in time from which something holds, or no longer holds.
type turn struct {
	at time.Time
	on bool
}

// holdsAt says whether something holds at a time: as the last turn before says, and before the first turn not.
func holdsAt(turns []turn, at time.Time) bool {
	holds := false
	for _, t := range turns {
		if t.at.After(at) {
			break
		}
		holds = t.on
	}
	return holds
}

// heldFor says whether something has held long enough to be known.
func heldFor(turns []turn, at time.Time) bool {
	return holdsAt(turns, at) && holdsAt(turns, at.Add(-lag))
}

// story says when what the product's access depends on held, as the audit logs of both clusters tell it.
type story struct {
	// good: the token in the product's Secret is no expired one, nor one of an older key.
	good []turn
	// granted: the product has its rights in the Shoot.
	granted []turn
	// ready: the Shoot's API server has come to know tokens and rights since its start.
	ready []turn
	// calls: a lifecycle call of a transition runs, by Shoot.
	calls map[string][]turn
}

func newStory(seed, shoot []auditv1.Event) *story {
	s := &story{calls: map[string][]turn{}}
	shoots := map[string]*shootNow{}
	for i := range seed {
		e := &seed[i]
		if e.Stage != auditv1.StageResponseComplete || e.ObjectRef == nil || codeOf(e) >= 300 || !slices.Contains(WriteVerbs, e.Verb) {
			continue
		}
		switch o := e.ObjectRef; {
		case o.Resource == "secrets" && o.Name == access.SecretName:
			if e.User.Username == ResourceManagerUser {
				s.good = append(s.good, turn{e.StageTimestamp.Time, true})
			} else if e.User.Username == AdminUser && e.Verb == "patch" { // ExpireToken
				s.good = append(s.good, turn{e.RequestReceivedTimestamp.Time, false})
			}
		case o.APIGroup == extensionsv1alpha1.SchemeGroupVersion.Group:
			s.follow(shoots, e)
		}
	}
	for i := range shoot {
		e := &shoot[i]
		if o := e.ObjectRef; o == nil || o.APIGroup != "rbac.authorization.k8s.io" || o.Name != access.RoleName || e.Stage != auditv1.StageResponseComplete {
			continue
		}
		s.granted = append(s.granted, turn{e.StageTimestamp.Time, e.Verb != "delete"})
	}
	sortTurns(s.good)
	sortTurns(s.granted)
	return s
}

// add adds when new keys were applied, and when the Shoot's API server was ready.
func (s *story) add(rotations []time.Time, ready []turn) {
	for _, at := range rotations {
		s.good = append(s.good, turn{at, false})
	}
	sortTurns(s.good)
	s.ready = ready
}

func sortTurns(turns []turn) {
	slices.SortStableFunc(turns, func(a, b turn) int { return a.at.Compare(b.at) })
}

// shootNow is what the seed says of a Shoot.
type shootNow struct {
	enabled, hibernated, onRecord, called bool
}

// follow takes over a write to an Extension or a Cluster.
func (s *story) follow(shoots map[string]*shootNow, e *auditv1.Event) {
	if e.ResponseObject == nil {
		return
	}
	namespace := e.ObjectRef.Namespace
	if e.ObjectRef.Resource == "clusters" {
		namespace = e.ObjectRef.Name
	}
	now := shoots[namespace]
	if now == nil {
		now = &shootNow{}
		shoots[namespace] = now
	}
	if e.ObjectRef.Resource == "clusters" {
		cluster := &extensionsv1alpha1.Cluster{}
		shoot := &gardencorev1beta1.Shoot{}
		if json.Unmarshal(e.ResponseObject.Raw, cluster) != nil || json.Unmarshal(cluster.Spec.Shoot.Raw, shoot) != nil {
			return
		}
		now.enabled = shoot.Spec.Hibernation != nil && shoot.Spec.Hibernation.Enabled != nil && *shoot.Spec.Hibernation.Enabled
		now.hibernated = shoot.Status.IsHibernated
	} else {
		ex := &extensionsv1alpha1.Extension{}
		if json.Unmarshal(e.ResponseObject.Raw, ex) != nil || ex.Spec.Type != v1alpha1.ExtensionType {
			return
		}
		state, _, _ := codec.DecodeState(ex.Status.State) // what can be read of it
		now.onRecord = state != nil && (len(state.Hooks) > 0 || record.CycleRuns(state))
		_, asked := ex.Annotations[v1beta1constants.GardenerOperation]
		last := ex.Status.LastOperation
		// A deleted Extension that is held is called by gardenlet's timestamp.
		now.called = asked || ex.DeletionTimestamp != nil || last != nil && last.State == gardencorev1beta1.LastOperationStateProcessing
	}
	s.calls[namespace] = append(s.calls[namespace], turn{e.StageTimestamp.Time, now.called && (now.enabled != now.hibernated || now.onRecord)})
}

// excuse is why a Use at this time was to be expected although it was refused or made with Gardener's access.
func (s *story) excuse(u Use, at time.Time) string {
	switch {
	case u.Access == AccessGardeners && u.Refused == 0:
		for _, turns := range s.calls {
			if holdsAt(turns, at) {
				return "the lifecycle call of a transition"
			}
		}
	case u.Refused != 0 && !heldFor(s.ready, at):
		return "while the API server started"
	case u.Refused == 401 && !heldFor(s.good, at):
		return "before the renewal of the token"
	case u.Refused == 403 && !heldFor(s.granted, at):
		return "before the rights came into the Shoot"
	}
	return ""
}
