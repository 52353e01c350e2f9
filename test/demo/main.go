// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Command demo plays how a Shoot with real Kyverno and fail-closed webhooks hibernates and wakes up, first without the
// guard, then with it, shows what happens while it happens, and judges what was promised.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// Exit codes.
const (
	exitKept        = 0
	exitBroken      = 1 // a promise was not kept
	exitFailed      = 2 // the demo could not be played to its end
	exitInterrupted = 130
)

// removeWithin bounds the removal of temporary files.
const removeWithin = 5 * time.Second

func main() {
	keep := flag.String("keep", "", "directory below which the data and logs of both runs are kept; default: they are removed")
	output := flag.String("output", filepath.Join("out", "demo.json"), "file for the results")
	flag.Parse()
	// The clients say much when an API server goes away, which is what happens here.
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
	signal.Ignore(syscall.SIGPIPE) // a reader that has gone ends the demo by an error, which leaves the time to clean up
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := runTidily(ctx, newTimeline(os.Stdout, stop), *keep, *output)
	stop()
	os.Exit(code)
}

// runTidily is run with a directory for temporary files of its own, children included: an interrupted go build leaves
// some.
func runTidily(ctx context.Context, t *timeline, keep, output string) (code int) {
	dir, err := os.MkdirTemp("", "hibernation-guard-demo-")
	if err == nil {
		err = os.Setenv("TMPDIR", dir)
	}
	if err != nil {
		t.line(markBroken, "failed to make a temporary directory: %v", err)
		return exitFailed
	}
	defer func() {
		// What the last child still writes may get in the way.
		if err := until(context.WithoutCancel(ctx), removeWithin, func() bool { return os.RemoveAll(dir) == nil }); err != nil {
			t.line(markBroken, "failed to remove %s", dir)
			code = exitFailed
		}
	}()
	return run(ctx, t, keep, output)
}

func run(ctx context.Context, t *timeline, keep, output string) int {
	expected, err := expectedHooks()
	if err != nil {
		t.line(markBroken, "%v", err)
		return exitFailed
	}
	result := &Result{}
	stop := context.AfterFunc(ctx, func() { t.line(markBroken, "interrupted") })
	err = playBoth(ctx, t, keep, expected, result)
	if !stop() {
		t.line(markBroken, "everything is cleaned up")
		return exitInterrupted
	}
	if err != nil {
		t.line(markBroken, "%v", err)
		return exitFailed
	}
	result.Finished = time.Now().UTC().Truncate(time.Second)
	result.WithoutGuard.Deadlocked = deadlocked(result)
	result.Promises = judge(result, expected)
	if err := result.write(output); err != nil {
		t.line(markBroken, "%v", err)
		return exitFailed
	}
	return conclude(t, result, expected, output)
}

func playBoth(ctx context.Context, t *timeline, keep string, expected []Hook, result *Result) error {
	t.title("WITHOUT THE GUARD")
	if err := playOne(ctx, t, false, expected, keep, func(s *stage) (err error) {
		result.WithoutGuard.Run, err = s.play(ctx)
		return err
	}, &result.WithoutGuard.Run); err != nil || ctx.Err() != nil {
		return err
	}
	t.title("WITH THE GUARD")
	return playOne(ctx, t, true, expected, keep, func(s *stage) (err error) {
		if result.WithGuard.Run, err = s.play(ctx); err != nil {
			return err
		}
		return s.account(ctx, &result.WithGuard)
	}, &result.WithGuard.Run)
}

// playOne plays one run on a stage of its own, which is gone when it returns.
func playOne(ctx context.Context, t *timeline, guarded bool, expected []Hook, keep string, play func(*stage) error, run *Run) error {
	begun := time.Now()
	dir := keep
	if dir != "" {
		dir = filepath.Join(keep, map[bool]string{false: "without-guard", true: "with-guard"}[guarded])
	}
	s, err := newStage(ctx, t, guarded, expected, dir)
	if err == nil {
		err = play(s)
	}
	t.line(markStep, "cleaning up")
	err = errors.Join(err, s.close())
	run.Seconds.Total = seconds(begun, time.Now())
	return err
}

// conclude prints the table and what was not kept.
func conclude(t *timeline, result *Result, expected []Hook, output string) int {
	t.plain(mark{}, "\n"+table(result, expected))
	code := exitKept
	for _, p := range result.Promises {
		if !p.Kept {
			t.plain(markBroken, fmt.Sprintf("BROKEN PROMISE  %s: %s", p.Promise, p.Found))
			code = exitBroken
		}
	}
	if code == exitKept {
		t.plain(markGood, fmt.Sprintf("All %d promises kept. Details: %s", len(result.Promises), output))
	}
	return code
}
