// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// mark is the kind of a line and its colour, as the parameter of the terminal's SGR sequence.
type mark struct{ word, colour string }

var (
	markPhase   = mark{"phase", "1"}     // bold
	markStep    = mark{"step", ""}       // what gardenlet and the bench do
	markHook    = mark{"hook", ""}       // a hook at its own policy
	markOpen    = mark{"hook", "33"}     // yellow: an open one
	markRefused = mark{"refused", "31"}  // red
	markGood    = mark{"ok", "32"}       // green
	markAlive   = mark{"…", "2"}         // faint
	markFailed  = mark{"failed", "31"}   // red
	markBroken  = mark{"broken", "1;31"} // bold red
)

const (
	// lineWidth is that of the text beside time and mark.
	lineWidth = 104
	indent    = 16
)

// timeline prints what happens, for people. Its methods may be called from any goroutine.
type timeline struct {
	out    io.Writer
	lost   func() // called when nobody reads any more
	colour bool

	mu    sync.Mutex
	begin time.Time // what times are counted from
	last  time.Time // of the last line
}

// newTimeline prints colours only on a terminal, and not if NO_COLOR is set (https://no-color.org).
func newTimeline(file *os.File, lost func()) *timeline {
	info, err := file.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &timeline{out: file, lost: lost, colour: terminal && os.Getenv("NO_COLOR") == "", begin: time.Now(), last: time.Now()}
}

// title begins a part; its times are counted from now.
func (t *timeline) title(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin, t.last = time.Now(), time.Now()
	t.print("")
	t.print(t.paint(markPhase, fmt.Sprintf("══ %s %s", text, strings.Repeat("═", max(0, lineWidth+indent-len([]rune(text))-4)))))
}

// line prints one entry at now, wrapped.
func (t *timeline) line(m mark, format string, args ...any) {
	t.at(time.Now(), m, format, args...)
}

// at prints one entry of a time that may be past.
func (t *timeline) at(when time.Time, m mark, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = time.Now()
	offset := max(0, when.Sub(t.begin))
	lines := wrap(fmt.Sprintf(format, args...), lineWidth)
	head := fmt.Sprintf("%2d:%04.1f  %-7s ", int(offset.Minutes()), (offset % time.Minute).Seconds(), m.word)
	t.print(t.paint(m, head+lines[0]))
	for _, rest := range lines[1:] {
		t.print(t.paint(m, strings.Repeat(" ", indent)+rest))
	}
}

// plain prints without time and mark.
func (t *timeline) plain(m mark, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = time.Now()
	t.print(t.paint(m, text))
}

// quiet is how long nothing was printed.
func (t *timeline) quiet() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Since(t.last)
}

func (t *timeline) print(line string) {
	if _, err := fmt.Fprintln(t.out, line); err != nil {
		t.lost()
	}
}

func (t *timeline) paint(m mark, text string) string {
	if !t.colour || m.colour == "" {
		return text
	}
	return "\x1b[" + m.colour + "m" + text + "\x1b[0m"
}

// wrap breaks text that is too long at spaces into lines of at most width characters; a longer word gets a line of its
// own.
func wrap(text string, width int) []string {
	if len([]rune(text)) <= width && !strings.Contains(text, "\n") {
		return []string{text}
	}
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		current := &lines[len(lines)-1]
		switch {
		case *current == "":
			*current = word
		case len([]rune(*current))+1+len([]rune(word)) <= width:
			*current += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
