// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
)

const root = "../.."

func TestGeneratedTwiceIsTheSame(t *testing.T) {
	g := NewWithT(t)
	for _, file := range files {
		first, err := generate(root, file)
		g.Expect(err).NotTo(HaveOccurred())
		second, err := generate(root, file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(first).To(Equal(second))
	}
}

// The chart is compared file by file: another Go version may compress it to other bytes.
func TestExampleIsWhatIsGenerated(t *testing.T) {
	g := NewWithT(t)
	want, err := generate(root, "controller-registration.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	got := example(g, "controller-registration.yaml")

	wantText, wantChart := split(g, want)
	gotText, gotChart := split(g, got)
	g.Expect(gotText).To(Equal(wantText), "run make generate-registration")
	g.Expect(gotChart).To(Equal(wantChart), "run make generate-registration")
	g.Expect(gotChart).To(HaveKey("gardener-extension-shoot-hibernation-guard/templates/_helpers.tpl"))
}

func TestExtensionIsWhatIsGenerated(t *testing.T) {
	g := NewWithT(t)
	want, err := generate(root, "extension.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(example(g, "extension.yaml"))).To(Equal(string(want)), "run make generate-registration")
}

func example(g *WithT, file string) []byte {
	content, err := os.ReadFile(filepath.Join(root, "example", file)) // #nosec G304 -- a file of the repository
	g.Expect(err).NotTo(HaveOccurred())
	return content
}

// split parts the registration into its text and the files of its chart.
func split(g *WithT, content []byte) (text string, chart map[string]string) {
	line := regexp.MustCompile(`(?m)^  rawChart: (.*)$`)
	match := line.FindSubmatch(content)
	g.Expect(match).To(HaveLen(2))
	archive, err := base64.StdEncoding.DecodeString(string(match[1]))
	g.Expect(err).NotTo(HaveOccurred())

	decompressor, err := gzip.NewReader(bytes.NewReader(archive))
	g.Expect(err).NotTo(HaveOccurred())
	reader := tar.NewReader(decompressor)
	chart = map[string]string{}
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		g.Expect(err).NotTo(HaveOccurred())
		data, err := io.ReadAll(reader)
		g.Expect(err).NotTo(HaveOccurred())
		chart[header.Name] = string(data)
	}
	return line.ReplaceAllString(string(content), ""), chart
}
