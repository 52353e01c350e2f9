// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package integration_test tells the life of the Extension in short stories: the product's controllers run in the test, on two
// real API servers, with nodes, pods, leases and endpoints made by hand.
//
// One API server plays all Shoots: each story has a Shoot of its own, which its gate makes of the objects with its label.
package integration_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/test/bench"
)

// servers are the API servers of the seed and of the Shoots.
var servers *bench.Bench

func TestMain(m *testing.M) {
	flag.Parse()
	parallelStories()
	logf.SetLogger(logr.Discard()) // Gardener's code says some things to the process-wide logger only
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyDuration(time.Second)
	SetDefaultConsistentlyPollingInterval(50 * time.Millisecond)
	os.Exit(run(m))
}

// parallelStories lets more stories than processors run at a time, unless the command line says otherwise: they mostly wait.
func parallelStories() {
	told := false
	flag.Visit(func(f *flag.Flag) { told = told || f.Name == "test.parallel" })
	if !told {
		_ = flag.Set("test.parallel", "12")
	}
}

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var err error
	if servers, err = bench.NewAPIServers(ctx, bench.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := servers.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	if err := grant(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
