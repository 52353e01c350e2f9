// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const module = "github.com/gardener-community/gardener-extension-shoot-hibernation-guard"

// moduleRoot is the directory of this module's go.mod, searched upwards from the working directory: tests run in the
// directory of their package, commands in the root.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("failed to get working directory: %w", err)
	}
	for {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod")) // #nosec G304 -- only its first line is looked at
		if err == nil && bytes.HasPrefix(content, []byte("module "+module+"\n")) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("failed to find the module root above the working directory")
		}
		dir = parent
	}
}

// binary is the path of a program that `make tools` builds.
func binary(name string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "bin", name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("failed to find %s: run \"make tools\": %w", name, err)
	}
	return path, nil
}

// moduleDir is where the source of a dependency is, as the go command says. goMod is the directory of the go.mod that
// requires it, relative to the module root.
func moduleDir(ctx context.Context, goMod, path string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", path) // #nosec G204 -- constant paths
	cmd.Dir = filepath.Join(root, goMod)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
		return "", fmt.Errorf("failed to find module %s: %w", path, err)
	}
	dir := strings.TrimSpace(string(out))
	if dir == "" {
		return "", fmt.Errorf("failed to find module %s: its source is not downloaded, run \"make tools\"", path)
	}
	return dir, nil
}
