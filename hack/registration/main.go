// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Command registration writes example/controller-registration.yaml. It is run in the root of the repository.
package main

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/charts"
)

const file = "example/controller-registration.yaml"

//go:embed registration.yaml.tpl
var registration string

func main() {
	content, err := generate(".")
	if err == nil {
		err = os.WriteFile(file, content, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// generate is the content of the file for the chart and the version in the repository at root.
func generate(root string) ([]byte, error) {
	version, err := os.ReadFile(filepath.Join(root, "VERSION"))
	if err != nil {
		return nil, fmt.Errorf("failed to read the version: %w", err)
	}
	chart, err := charts.Archive()
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	err = template.Must(template.New("").Parse(registration)).Execute(&content, map[string]string{
		"Version": strings.TrimSpace(string(version)),
		"Chart":   base64.StdEncoding.EncodeToString(chart),
	})
	return content.Bytes(), err
}
