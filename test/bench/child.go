// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// child is one process the bench started. Its output is appended to a log file.
type child struct {
	name    string
	logPath string
	cmd     *exec.Cmd
	done    chan struct{}
	ended   time.Time // valid once done is closed
	state   string    // how it ended, valid once done is closed
}

// command says what to run.
type command struct {
	name, path, logPath string
	args, env           []string // env is added to a minimal environment
}

// spawner starts children on one thread that lives as long as this process: Linux sends the parent-death signal when
// the forking thread ends, and Go may end other threads at any time.
var spawner = sync.OnceValue(func() chan<- func() {
	requests := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range requests {
			start()
		}
	}()
	return requests
})

// startChild starts a process. It is not tied to a context: whoever starts a child ends it.
func startChild(c command) (*child, error) {
	if err := os.MkdirAll(filepath.Dir(c.logPath), 0o755); err != nil {
		return nil, fmt.Errorf("failed to create log directory: %w", err)
	}
	log, err := os.OpenFile(c.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) // #nosec G304 -- a path of the bench
	if err != nil {
		return nil, fmt.Errorf("failed to open log: %w", err)
	}
	defer log.Close()

	cmd := exec.Command(c.path, c.args...) // #nosec G204 -- the bench runs the binaries it is given
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(c.logPath)}, c.env...)
	cmd.SysProcAttr = childAttributes()

	started := make(chan error)
	spawner() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("failed to start %s: %w", c.name, err)
	}

	p := &child{name: c.name, logPath: c.logPath, cmd: cmd, done: make(chan struct{})}
	go func() {
		err := cmd.Wait()
		p.ended, p.state = time.Now(), fmt.Sprint(cmd.ProcessState)
		if cmd.ProcessState == nil {
			p.state = fmt.Sprint(err)
		}
		close(p.done)
	}()
	return p, nil
}

func (c *child) Pid() int              { return c.cmd.Process.Pid }
func (c *child) Done() <-chan struct{} { return c.done }

// running is false for a nil child.
func (c *child) running() bool {
	if c == nil {
		return false
	}
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// waitReady waits until the process answers on /readyz of the loopback port, or has ended.
func (c *child) waitReady(ctx context.Context, port int, timeout time.Duration) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		if !c.running() {
			return false, fmt.Errorf("it ended: %s", c.state)
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+loopback(port)+"/readyz", nil)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, nil //nolint:nilerr // not listening yet
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
	if err != nil {
		return fmt.Errorf("failed to see %s ready: %w; its last words: %s", c.name, err, c.lastWords())
	}
	return nil
}

// Stop asks the process to end, ends it by force after grace, and returns when it has ended. The pid stays ours until
// Wait has returned, and os.Process refuses to signal afterwards: no other process can be hit.
func (c *child) Stop(grace time.Duration) {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
		c.Kill()
	}
}

// Kill ends the process at once and returns when it has ended.
func (c *child) Kill() {
	_ = c.cmd.Process.Kill()
	<-c.done
}

// lastWords are the last lines of the child's log, for error messages.
func (c *child) lastWords() string {
	const limit = 2000
	content, err := os.ReadFile(c.logPath)
	if err != nil {
		return err.Error()
	}
	if len(content) > limit {
		content = content[len(content)-limit:]
	}
	return string(bytes.TrimSpace(content))
}
