// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Command registration writes the files in example/ by which the extension is offered on a landscape. It is run in the root
// of the repository.
package main

import (
	"bytes"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/charts"
)

// files are what is written, each from the template of its name.
var files = []string{"controller-registration.yaml", "extension.yaml"}

//go:embed *.yaml.tpl
var templates embed.FS

func main() {
	var errs []error
	for _, file := range files {
		content, err := generate(".", file)
		if err == nil {
			err = os.WriteFile(filepath.Join("example", file), content, 0o644) // #nosec G306 -- an example for everybody
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// generate is the content of a file for the chart and the version in the repository at root.
func generate(root, file string) ([]byte, error) {
	read, err := os.ReadFile(filepath.Join(root, "VERSION")) // #nosec G304 -- a file of the repository
	if err != nil {
		return nil, fmt.Errorf("failed to read the version: %w", err)
	}
	chart, err := charts.Archive(charts.Extension)
	if err != nil {
		return nil, err
	}
	version := strings.TrimSpace(string(read))
	all := template.New("")
	all.Funcs(template.FuncMap{"include": func(name string, data any, indent int) (string, error) {
		var content strings.Builder
		err := all.ExecuteTemplate(&content, name, data)
		margin := strings.Repeat(" ", indent)
		return margin + strings.ReplaceAll(content.String(), "\n", "\n"+margin), err
	}})
	var content bytes.Buffer
	err = template.Must(all.ParseFS(templates, "*.tpl")).ExecuteTemplate(&content, file+".tpl", map[string]string{
		"Version":      version,
		"ChartVersion": strings.TrimPrefix(version, "v"), // SemVer knows no v
		"Chart":        base64.StdEncoding.EncodeToString(chart),
	})
	return append(bytes.TrimSpace(content.Bytes()), '\n'), err
}
