// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func sleeper(t *testing.T, dir string, seconds string) *child {
	g := NewWithT(t)
	path, err := exec.LookPath("sleep")
	g.Expect(err).NotTo(HaveOccurred())
	c, err := startChild(command{name: "sleep", path: path, args: []string{seconds}, logPath: filepath.Join(dir, "sleep.log")})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(c.Kill)
	return c
}

func TestChildEnds(t *testing.T) {
	for _, c := range []struct {
		name    string
		seconds string
		end     func(*child)
		want    string
	}{
		{"on its own", "0", func(*child) {}, "exit status 0"},
		{"when it is asked to", "100", func(c *child) { c.Stop(time.Minute) }, "signal: terminated"},
		{"by force when it does not heed", "100", func(c *child) { c.Stop(-1) }, "signal: "},
		{"when it is killed", "100", func(c *child) { c.Kill() }, "signal: killed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			begin := time.Now()
			child := sleeper(t, t.TempDir(), c.seconds)
			c.end(child)
			g.Eventually(child.Done(), "5s").Should(BeClosed())
			g.Expect(child.running()).To(BeFalse())
			g.Expect(child.state).To(HavePrefix(c.want))
			g.Expect(child.ended).To(BeTemporally("~", begin, 5*time.Second))
			child.Kill() // changes nothing
		})
	}
}

func TestMissingBinaryIsAnError(t *testing.T) {
	g := NewWithT(t)
	_, err := startChild(command{name: "nothing", path: "/does/not/exist", logPath: filepath.Join(t.TempDir(), "log")})
	g.Expect(err).To(MatchError(ContainSubstring("failed to start nothing")))
	_, err = binary("nothing")
	g.Expect(err).To(MatchError(ContainSubstring(`run "make tools"`)))
}

// TestChildDiesWithItsParent runs itself as the parent.
func TestChildDiesWithItsParent(t *testing.T) {
	const parent = "BENCH_TEST_PARENT"
	if dir := os.Getenv(parent); dir != "" {
		fmt.Println("child", sleeper(t, dir, "100").Pid())
		time.Sleep(time.Minute)
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells children of their parent's death")
	}
	g := NewWithT(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildDiesWithItsParent$")
	cmd.Env = append(os.Environ(), parent+"="+t.TempDir())
	out, err := cmd.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cmd.Start()).To(Succeed())
	var pid int
	_, err = fmt.Fscanf(out, "child %d\n", &pid)
	g.Expect(err).NotTo(HaveOccurred())
	running := func() bool {
		content, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err == nil && !strings.Contains(string(content), ") Z ")
	}
	g.Expect(running()).To(BeTrue())
	g.Expect(cmd.Process.Kill()).To(Succeed())
	_ = cmd.Wait()
	g.Eventually(running, "5s").Should(BeFalse())
}

func TestPortsAreReservedUntilTheyAreGivenBack(t *testing.T) {
	g := NewWithT(t)
	var one, other ports // as of two processes
	defer one.close()
	defer other.close()
	taken := map[int]bool{}
	for range 50 {
		for _, p := range []*ports{&one, &other} {
			port, err := p.take()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(port).To(And(BeNumerically(">=", firstPort), BeNumerically("<", lastPort)))
			g.Expect(taken).NotTo(HaveKey(port))
			taken[port] = true
		}
	}
	before := len(one.reserved)
	port, err := one.take()
	g.Expect(err).NotTo(HaveOccurred())
	one.give(port)
	one.give(port)
	g.Expect(one.reserved).To(HaveLen(before))
}
