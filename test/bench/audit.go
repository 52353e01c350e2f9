// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// auditPolicy of both API servers. Dropped are only what the bench itself and the machines read, health checks, and
// leases of the components. Configurations of webhooks and extensions.gardener.cloud are kept with bodies and answers,
// other writes with their bodies, except those of the components and of Kyverno and except Secrets and tokens.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  # The product in the Shoot by its own access, and by Gardener's, which gardenlet has too: their user agents tell them apart.
  users: ["system:serviceaccount:kube-system:shoot-hibernation-guard", "system:serviceaccount:kube-system:gardener-internal"]
  verbs: [get, list, watch]
- level: None
  users: [bench-admin, system:anonymous, system:apiserver, system:kube-controller-manager, system:kube-scheduler]
  verbs: [get, list, watch]
- level: None
  userGroups: [system:nodes, system:serviceaccounts:kube-system]
  verbs: [get, list, watch]
- level: None
  users: [system:apiserver, system:kube-controller-manager, system:kube-scheduler]
  resources:
  - {group: coordination.k8s.io, resources: [leases]}
- level: None
  nonResourceURLs: [/healthz*, /readyz*, /livez*]
  users: [bench-admin, system:anonymous]
- level: RequestResponse
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - {group: admissionregistration.k8s.io}
  - {group: extensions.gardener.cloud}
- level: Metadata
  resources:
  - {group: "", resources: [secrets, serviceaccounts/token]}
- level: Metadata
  users: [bench-admin, system:apiserver, system:kube-controller-manager, system:kube-scheduler]
- level: Metadata
  userGroups: [system:nodes, system:serviceaccounts:kube-system, system:serviceaccounts:kyverno]
- level: Request
  verbs: [create, update, patch, delete, deletecollection]
- level: Metadata
`

// WriteVerbs are the verbs that change something.
var WriteVerbs = []string{"create", "update", "patch", "delete", "deletecollection"}

// Audit reads the audit log of one API server: the witness for who asked what, when, and with what answer. An event
// is in the log at the latest a few milliseconds after the answer was sent.
type Audit struct {
	pattern string

	mu     sync.Mutex
	files  []*auditFile
	events []auditv1.Event
}

// auditFile is a log file that was read up to offset; rotation renames it.
type auditFile struct {
	info   fs.FileInfo
	offset int64
}

// Filter selects events; an empty field selects all.
type Filter struct {
	// User is the whole user name, UserAgent a part of the user agent.
	User, UserAgent string
	Verbs           []string
	// Resource may name a subresource after a slash, as in `nodes/status`; without one, requests to subresources are
	// selected too.
	Group, Resource, Namespace, Name string
	// Failed selects requests that were answered with 400 or more.
	Failed bool
	// Since and Until are compared with the time the request was received; both inclusive.
	Since, Until time.Time
	// Stage defaults to ResponseComplete.
	Stage auditv1.Stage
}

func newAudit(dir string) *Audit { return &Audit{pattern: filepath.Join(dir, "audit*.log")} }

// Events returns the events that filter selects, in the order in which the requests were received.
func (a *Audit) Events(filter Filter) ([]auditv1.Event, error) {
	if filter.Stage == "" {
		filter.Stage = auditv1.StageResponseComplete
	}
	all, err := a.read()
	if err != nil {
		return nil, err
	}
	var selected []auditv1.Event
	for i := range all {
		if filter.selects(&all[i]) {
			selected = append(selected, all[i])
		}
	}
	slices.SortStableFunc(selected, func(x, y auditv1.Event) int {
		return x.RequestReceivedTimestamp.Compare(y.RequestReceivedTimestamp.Time)
	})
	return selected, nil
}

// Writes returns the requests that were to change something: verbs in WriteVerbs, without dry runs. A refused write is
// among them; its ResponseStatus says so.
func (a *Audit) Writes(filter Filter) ([]auditv1.Event, error) {
	if len(filter.Verbs) == 0 {
		filter.Verbs = WriteVerbs
	}
	events, err := a.Events(filter)
	return slices.DeleteFunc(events, func(e auditv1.Event) bool {
		_, query, _ := strings.Cut(e.RequestURI, "?")
		return strings.Contains(query, "dryRun=")
	}), err
}

// OpenWatches returns the watches that filter selects which have begun and not ended.
func (a *Audit) OpenWatches(filter Filter) ([]auditv1.Event, error) {
	filter.Verbs, filter.Stage = []string{"watch"}, auditv1.StageResponseStarted
	begun, err := a.Events(filter)
	if err != nil {
		return nil, err
	}
	ended := map[string]bool{}
	for _, stage := range []auditv1.Stage{auditv1.StageResponseComplete, auditv1.StagePanic} {
		filter.Stage = stage
		events, err := a.Events(filter)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			ended[string(e.AuditID)] = true
		}
	}
	return slices.DeleteFunc(begun, func(e auditv1.Event) bool { return ended[string(e.AuditID)] }), nil
}

func (f *Filter) selects(e *auditv1.Event) bool {
	received := e.RequestReceivedTimestamp.Time
	switch {
	case e.Stage != f.Stage,
		f.User != "" && e.User.Username != f.User,
		f.UserAgent != "" && !strings.Contains(e.UserAgent, f.UserAgent),
		len(f.Verbs) > 0 && !slices.Contains(f.Verbs, e.Verb),
		f.Failed && (e.ResponseStatus == nil || e.ResponseStatus.Code < 400),
		!f.Since.IsZero() && received.Before(f.Since),
		!f.Until.IsZero() && received.After(f.Until):
		return false
	}
	return f.selectsObject(e.ObjectRef)
}

func (f *Filter) selectsObject(o *auditv1.ObjectReference) bool {
	if o == nil {
		return f.Group == "" && f.Resource == "" && f.Namespace == "" && f.Name == ""
	}
	resource, subresource, withSub := strings.Cut(f.Resource, "/")
	return (f.Group == "" || f.Group == o.APIGroup) &&
		(resource == "" || resource == o.Resource) &&
		(!withSub || subresource == o.Subresource) &&
		(f.Namespace == "" || f.Namespace == o.Namespace) &&
		(f.Name == "" || f.Name == o.Name)
}

// read returns all events so far. What was read before is kept; a last line that is still being written waits for the
// next call.
func (a *Audit) read() ([]auditv1.Event, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	paths, err := filepath.Glob(a.pattern)
	if err != nil {
		return nil, fmt.Errorf("failed to find audit logs: %w", err)
	}
	for _, path := range paths {
		if err := a.readFile(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("failed to read audit log: %w", err)
		}
	}
	return a.events, nil
}

func (a *Audit) readFile(path string) error {
	file, err := os.Open(path) // #nosec G304 -- a path of the bench
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	known := a.known(info)
	content, err := io.ReadAll(io.NewSectionReader(file, known.offset, info.Size()-known.offset))
	if err != nil {
		return err
	}
	for line := range bytes.Lines(content) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			return nil
		}
		known.offset += int64(len(line))
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		a.events = append(a.events, event)
	}
	return nil
}

func (a *Audit) known(info fs.FileInfo) *auditFile {
	for _, f := range a.files {
		if os.SameFile(f.info, info) {
			return f
		}
	}
	f := &auditFile{info: info}
	a.files = append(a.files, f)
	return f
}
