// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Command rights compares what the product was granted with what it used in the runs of benches that left their uses in a
// directory (bench.RightsEnv). It fails if a request was refused, if a right was used by nobody, or if Gardener's own access to a
// Shoot was used where it should not be.
//
//	go run ./test/rights DIRECTORY
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/access"
	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: rights DIRECTORY")
		os.Exit(2)
	}
	wrong, err := run(os.Stdout, os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if wrong > 0 {
		os.Exit(1)
	}
}

// run prints the comparison and returns how much is wrong.
func run(out io.Writer, dir string) (int, error) {
	uses, benches, err := load(dir)
	if err != nil {
		return 0, err
	}
	objects, err := bench.ControllerRights()
	if err != nil {
		return 0, err
	}
	result := compare(append(grantsOf("seed", objects), grantsOf("shoot", access.Objects())...), uses)
	result.print(out)
	fmt.Fprintf(out, "%d benches, %d rights, %d wrong\n", benches, len(result.grants), result.wrong())
	return result.wrong(), nil
}

// load reads what the benches left.
func load(dir string) (uses []bench.Use, benches int, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, 0, fmt.Errorf("failed to find uses: %w", err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path) // #nosec G304 -- named on the command line
		if err != nil {
			return nil, 0, fmt.Errorf("failed to read uses: %w", err)
		}
		var some []bench.Use
		if err := json.Unmarshal(content, &some); err != nil {
			return nil, 0, fmt.Errorf("failed to decode %s: %w", path, err)
		}
		uses = append(uses, some...)
	}
	return uses, len(paths), nil
}
