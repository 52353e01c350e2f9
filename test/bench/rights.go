// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// RightsEnv names the environment variable with the directory that Close leaves the Uses of a bench in.
const RightsEnv = "BENCH_RIGHTS_DIR"

// Whose access to a Shoot a request was made with.
const (
	AccessOwn       = "own"
	AccessGardeners = "gardener's"
)

// Use is a kind of request that the product made.
type Use struct {
	// Cluster is "seed" or "shoot".
	Cluster string `json:"cluster"`
	// Access is AccessOwn or AccessGardeners.
	Access string `json:"access"`
	Verb   string `json:"verb"`
	Group  string `json:"group"`
	// Resource has its subresource after a slash. It is empty for a path that is no resource, which is the Name then.
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Refused is the code of the answer if it was 401 or 403, else 0.
	Refused int32 `json:"refused,omitempty"`
	// Expected is why it was to be expected that the request was refused, or made with Gardener's access; empty if it was not.
	Expected string `json:"expected,omitempty"`
	// Count says how often, and First when for the first time.
	Count int       `json:"count"`
	First time.Time `json:"first"`
}

// IsWrong says whether the request should not have been made, or should have been granted.
func (u Use) IsWrong() bool {
	return u.Expected == "" && (u.Refused != 0 || u.Access == AccessGardeners)
}

// String is for messages.
func (u Use) String() string {
	text := fmt.Sprintf("%s, %s access: %s %s %s", u.Cluster, u.Access, u.Verb, strings.Trim(u.Group+"/"+u.Resource, "/"),
		strings.Trim(u.Namespace+"/"+u.Name, "/"))
	if u.Refused != 0 {
		text += fmt.Sprintf(", refused with %d", u.Refused)
	}
	return fmt.Sprintf("%s (%d times, first at %s)", text, u.Count, u.First.Format("15:04:05.000"))
}

// Uses are the kinds of requests the product has made so far, by both audit logs.
func (b *Bench) Uses() ([]Use, error) {
	seed, err := b.Seed.Audit().read()
	if err != nil {
		return nil, err
	}
	shoot, err := b.Shoot.Audit().read()
	if err != nil {
		return nil, err
	}
	story := newStory(seed, shoot)
	story.add(b.Shoot.life())
	uses := map[Use]Use{}
	for i := range seed {
		if e := &seed[i]; e.User.Username == ControllerUser && counts(e) {
			add(uses, useOf("seed", e))
		}
	}
	for i := range shoot {
		e := &shoot[i]
		if !strings.HasPrefix(e.UserAgent, ControllerAgent) || !counts(e) {
			continue
		}
		u := useOf("shoot", e)
		u.Expected = story.excuse(u, e.RequestReceivedTimestamp.Time)
		add(uses, u)
	}
	var sorted []Use
	for _, u := range uses {
		sorted = append(sorted, u)
	}
	slices.SortFunc(sorted, func(a, b Use) int { return cmp.Or(a.First.Compare(b.First), cmp.Compare(a.String(), b.String())) })
	return sorted, nil
}

// counts says whether an event stands for a request: its end, or the beginning of one that lasts.
func counts(e *auditv1.Event) bool {
	switch code := codeOf(e); {
	case code == 401: // of a request whose user is not known, the API server logs one stage only
		return true
	case e.Verb == "watch" && code < 400:
		return e.Stage == auditv1.StageResponseStarted
	}
	return e.Stage == auditv1.StageResponseComplete
}

func useOf(cluster string, e *auditv1.Event) Use {
	u := Use{Cluster: cluster, Access: AccessOwn, Verb: e.Verb, Count: 1, First: e.RequestReceivedTimestamp.Time}
	if e.User.Username == gardenersUser {
		u.Access = AccessGardeners
	}
	if o := e.ObjectRef; o != nil {
		u.Group, u.Resource, u.Namespace, u.Name = o.APIGroup, o.Resource, o.Namespace, o.Name
		if o.Subresource != "" {
			u.Resource += "/" + o.Subresource
		}
	} else {
		u.Name, _, _ = strings.Cut(e.RequestURI, "?")
	}
	// An admission webhook's denial has the code 403, too, but was granted.
	switch code := codeOf(e); {
	case code == 401, code == 403 && e.Annotations["authorization.k8s.io/decision"] != "allow":
		u.Refused = code
	}
	return u
}

func codeOf(e *auditv1.Event) int32 {
	if e.ResponseStatus == nil {
		return 0
	}
	return e.ResponseStatus.Code
}

// add counts equal uses together.
func add(uses map[Use]Use, u Use) {
	key := u
	key.Count, key.First = 0, time.Time{}
	if known, ok := uses[key]; ok {
		u.Count += known.Count
		if known.First.Before(u.First) {
			u.First = known.First
		}
	}
	uses[key] = u
}

// WrongUses are the Uses that should not have been, as an error; nil if there are none.
func (b *Bench) WrongUses() error {
	uses, err := b.Uses()
	if err != nil {
		return err
	}
	var wrong []error
	for _, u := range uses {
		if u.IsWrong() {
			wrong = append(wrong, errors.New(u.String()))
		}
	}
	return errors.Join(wrong...)
}

// leaveUses writes the Uses where RightsEnv says.
func (b *Bench) leaveUses() error {
	dir := os.Getenv(RightsEnv)
	if dir == "" || b.Shoot == nil || b.left {
		return nil
	}
	b.left = true
	uses, err := b.Uses()
	if err != nil || len(uses) == 0 {
		return err
	}
	content, err := json.MarshalIndent(uses, "", " ")
	if err != nil {
		return fmt.Errorf("failed to encode uses: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("failed to create directory: %w", err)
	}
	name := fmt.Sprintf("%s-%d-%d.json", filepath.Base(os.Args[0]), os.Getpid(), time.Now().UnixNano())
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil { // #nosec G306 -- no secrets
		return fmt.Errorf("failed to write uses: %w", err)
	}
	return nil
}
