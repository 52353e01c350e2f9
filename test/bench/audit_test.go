// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

func auditLine(id, verb string, received time.Time) string {
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":%q,"stage":"ResponseComplete","requestURI":"/api/v1/namespaces/n/configmaps/c?%s",`+
		`"verb":%q,"user":{"username":"u"},"userAgent":"guard/v1","objectRef":{"resource":"configmaps","namespace":"n","name":"c","subresource":"scale"},`+
		`"responseStatus":{"code":200},"requestReceivedTimestamp":%q}`+"\n", id, strings.TrimPrefix(id, "dry"), verb, received.UTC().Format("2006-01-02T15:04:05.000000Z"))
}

func TestAuditReadsALogThatGrowsAndRotates(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	log := filepath.Join(dir, "audit.log")
	audit := newAudit(dir)
	ids := func() []string {
		events, err := audit.Events(Filter{})
		g.Expect(err).NotTo(HaveOccurred())
		var ids []string
		for _, e := range events {
			ids = append(ids, string(e.AuditID))
		}
		return ids
	}
	write := func(content string) {
		file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = file.WriteString(content)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(file.Close()).To(Succeed())
	}
	now := time.Now()
	second := auditLine("2", "update", now.Add(time.Second))

	g.Expect(ids()).To(BeEmpty(), "without a log")
	write(auditLine("1", "get", now) + second[:20])
	g.Expect(ids()).To(Equal([]string{"1"}), "without the line that is being written")
	write(second[20:])
	g.Expect(ids()).To(Equal([]string{"1", "2"}))
	g.Expect(os.Rename(log, filepath.Join(dir, "audit-2026-01-01T00-00-00.000.log"))).To(Succeed())
	write(auditLine("0", "get", now.Add(-time.Second)))
	g.Expect(ids()).To(Equal([]string{"0", "1", "2"}), "in the order of the requests")
	write("no JSON\n")
	_, err := audit.Events(Filter{})
	g.Expect(err).To(MatchError(ContainSubstring("audit.log")))
}

func TestFilterSelects(t *testing.T) {
	g := NewWithT(t)
	received := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(dir, "audit.log"), []byte(auditLine("1", "update", received)), 0o600)).To(Succeed())
	audit := newAudit(dir)
	for _, c := range []struct {
		name   string
		filter Filter
		want   int
	}{
		{"all when it is empty", Filter{}, 1},
		{"the user", Filter{User: "u"}, 1},
		{"not another user", Filter{User: "us"}, 0},
		{"a part of the user agent", Filter{UserAgent: "guard"}, 1},
		{"not another user agent", Filter{UserAgent: "kubelet"}, 0},
		{"one of the verbs", Filter{Verbs: []string{"patch", "update"}}, 1},
		{"not another verb", Filter{Verbs: []string{"patch"}}, 0},
		{"the resource with any subresource", Filter{Resource: "configmaps"}, 1},
		{"the subresource", Filter{Resource: "configmaps/scale"}, 1},
		{"not another subresource", Filter{Resource: "configmaps/status"}, 0},
		{"not the main resource alone", Filter{Resource: "configmaps/"}, 0},
		{"not another group", Filter{Group: "apps"}, 0},
		{"not another namespace", Filter{Namespace: "m"}, 0},
		{"not another name", Filter{Name: "d"}, 0},
		{"not a success among failures", Filter{Failed: true}, 0},
		{"a request received at the beginning of the time", Filter{Since: received}, 1},
		{"not a request received before", Filter{Since: received.Add(time.Microsecond)}, 0},
		{"a request received at the end of the time", Filter{Until: received}, 1},
		{"not a request received after", Filter{Until: received.Add(-time.Microsecond)}, 0},
		{"not another stage", Filter{Stage: auditv1.StageResponseStarted}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			NewWithT(t).Expect(audit.Events(c.filter)).To(HaveLen(c.want))
		})
	}
}
