// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
)

const (
	// ControllerUser is whom the seed's audit log names for the extension's controller.
	ControllerUser = "system:serviceaccount:" + controllerNamespace + ":gardener-extension-shoot-hibernation-guard"
	// ControllerAgent begins the user agent of the controller in the Shoot's audit log.
	ControllerAgent = controllerName + "/"

	controllerNamespace = "extension-shoot-hibernation-guard"
	controllerName      = "gardener-extension-shoot-hibernation-guard"
)

// ControllerOptions of the extension's controller.
type ControllerOptions struct {
	// Config is the content of the --config file; empty: none is given.
	Config string
	// LeaderElection turns it on.
	LeaderElection bool
	// Garden is what a kubeconfig is injected for, as gardenlet does it if the ControllerDeployment says so; nil: none.
	Garden *Garden
}

// Controller is the extension's controller as a process, built from this module.
type Controller struct {
	bench   *Bench
	options ControllerOptions
	port    int

	mu    sync.Mutex
	child *child
	runs  int
}

// buildController builds the controller once per process.
var buildController = sync.OnceValues(func() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "bin", controllerName)
	cmd := exec.Command("go", "build", "-o", path, "./cmd/"+controllerName) // #nosec G204 -- constant
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("failed to build the controller: %w: %s", err, out)
	}
	return path, nil
})

// StartController builds the controller if need be, starts it against the seed with the rights that its chart gives it, and
// returns when it is ready.
func (b *Bench) StartController(ctx context.Context, o ControllerOptions) (*Controller, error) {
	if err := b.GrantController(ctx); err != nil {
		return nil, err
	}
	port, err := b.ports.take()
	if err != nil {
		return nil, err
	}
	c := &Controller{bench: b, options: o, port: port}
	b.controllers = append(b.controllers, c)
	return c, c.Start(ctx)
}

// Start starts the process again after Stop or Kill and returns when it is ready.
func (c *Controller) Start(ctx context.Context) error {
	path, err := buildController()
	if err != nil {
		return err
	}
	args, err := c.args()
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.runs++
	log := filepath.Join(c.bench.Dir, "log", fmt.Sprintf("%s-%d-%d.log", controllerName, c.port, c.runs))
	p, err := startChild(command{name: controllerName, path: path, logPath: log, args: args, env: c.env()})
	c.child = p
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return p.waitReady(ctx, c.port, 30*time.Second)
}

// env is what gardenlet adds to the environment of the container.
func (c *Controller) env() []string {
	if c.options.Garden == nil {
		return nil
	}
	return []string{v1beta1constants.EnvGenericGardenKubeconfig + "=" + c.options.Garden.extensionKubeconfig, v1beta1constants.EnvSeedName + "=" + seedNames[0]}
}

func (c *Controller) args() ([]string, error) {
	kubeconfig, err := c.bench.Seed.Kubeconfig(ControllerUser, ControllerGroups...)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.bench.Dir, "controller")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("failed to create directory: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kubeconfig"), kubeconfig, 0o600); err != nil {
		return nil, fmt.Errorf("failed to write kubeconfig: %w", err)
	}
	args := []string{
		"--kubeconfig=" + filepath.Join(dir, "kubeconfig"),
		"--leader-election=" + strconv.FormatBool(c.options.LeaderElection), "--leader-election-namespace=" + controllerNamespace,
		"--heartbeat-namespace=" + controllerNamespace,
		"--metrics-bind-address=0", "--health-bind-address=" + loopback(c.port), "--log-format=text",
	}
	if c.options.Config == "" {
		return args, nil
	}
	path := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(path, []byte(c.options.Config), 0o600); err != nil {
		return nil, fmt.Errorf("failed to write configuration: %w", err)
	}
	return append(args, "--config="+path), nil
}

// Stop asks the process to end and returns when it has.
func (c *Controller) Stop() {
	if p := c.running(); p != nil {
		p.Stop(10 * time.Second)
	}
}

// Kill ends the process as SIGKILL does.
func (c *Controller) Kill() {
	if p := c.running(); p != nil {
		p.Kill()
	}
}

// Pid of the running process; 0 when none runs.
func (c *Controller) Pid() int {
	if p := c.running(); p != nil {
		return p.Pid()
	}
	return 0
}

func (c *Controller) running() *child {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.child.running() {
		return c.child
	}
	return nil
}
