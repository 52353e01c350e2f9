// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package pkg_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const module = "github.com/gardener-community/gardener-extension-shoot-hibernation-guard"

// layers are the directories of production code, lowest first: a package imports those of lower layers. Packages below one
// directory, and the members of the shell, may import each other.
var layers = [][]string{
	{"pkg/apis"},
	{"pkg/hook"},
	{"pkg/scope", "pkg/backend", "pkg/phase", "pkg/record"},
	{"pkg/decide", "pkg/gate"},
	{"pkg/report"},
	{"pkg/access", "pkg/snapshot", "pkg/apply", "pkg/canary", "pkg/shoot", "pkg/garden", "pkg/guard", "pkg/controller", "pkg/admission", "pkg/metrics", "pkg/doctor"},
	{"cmd"},
}

const (
	reportLayer = 4
	shellLayer  = 5
	// lowestPure is pkg/hook; pkg/apis only has types, but registers them.
	lowestPure = 1
)

// impure are the imports, and what is below them, by which a package would get a client, a clock, a logger or a context.
var impure = []string{
	"context", "os", "net", "net/http", "log", "math/rand", "math/rand/v2", "testing",
	"github.com/go-logr/logr", "go.uber.org/zap", "k8s.io/klog",
	"k8s.io/client-go", "k8s.io/utils/clock", "sigs.k8s.io/controller-runtime",
	"github.com/gardener/gardener/extensions", "github.com/gardener/gardener/pkg/client", "github.com/gardener/gardener/pkg/extensions",
}

// clocks are the functions that read the time or wait for it, by package.
var clocks = map[string][]string{
	"time":                                 {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"k8s.io/apimachinery/pkg/apis/meta/v1": {"Now", "NowMicro"},
}

func TestImportDirection(t *testing.T) {
	g := NewWithT(t)
	root, err := filepath.Abs("..")
	g.Expect(err).NotTo(HaveOccurred())
	var checked int
	g.Expect(filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(name, root), string(filepath.Separator)))
		if entry.IsDir() {
			return skip(name, relative)
		}
		if path.Ext(relative) != ".go" {
			return nil
		}
		checked++
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, v := range violations(g, relative, string(source)) {
			t.Error(v)
		}
		return nil
	})).To(Succeed())
	g.Expect(checked).To(BeNumerically(">", 20), "the walk found the code")
}

// skip leaves out hidden directories and what belongs to another module.
func skip(name, relative string) error {
	if relative == "" {
		return nil
	}
	_, err := os.Stat(filepath.Join(name, "go.mod"))
	base := path.Base(relative)
	if err == nil || strings.HasPrefix(base, ".") || base == "testdata" || relative == "bin" || relative == "out" {
		return filepath.SkipDir
	}
	return nil
}

// violations are the sentences to say about one file, given by its path in the module.
func violations(g *WithT, file, source string) []string {
	if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "test/") {
		return nil
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	g.Expect(err).NotTo(HaveOccurred())
	layer, home := layerOf(path.Dir(file))
	if layer < 0 && (strings.HasPrefix(file, "pkg/") || strings.HasPrefix(file, "cmd/")) {
		return []string{fmt.Sprintf("%s: its directory is in no layer", file)}
	}
	pure := layer >= lowestPure && layer <= reportLayer

	var found []string
	for _, i := range parsed.Imports {
		imported, err := strconv.Unquote(i.Path.Value)
		g.Expect(err).NotTo(HaveOccurred())
		switch why := forbidden(imported, layer, home); {
		case why != "":
			found = append(found, fmt.Sprintf("%s imports %s: %s", file, imported, why))
		case pure && slices.ContainsFunc(impure, func(p string) bool { return within(imported, p) }):
			found = append(found, fmt.Sprintf("%s imports %s: the package is pure", file, imported))
		}
	}
	if pure {
		found = append(found, clockCalls(set, parsed)...)
	}
	return found
}

// layerOf returns the layer of a directory of the module and the entry of layers it belongs to; -1 if there is none.
func layerOf(directory string) (int, string) {
	for i, layer := range layers {
		for _, home := range layer {
			if within(directory, home) {
				return i, home
			}
		}
	}
	return -1, ""
}

func within(p, prefix string) bool {
	return p == prefix || strings.HasPrefix(p, prefix+"/")
}

// forbidden returns why a package of the layer must not import the other one; empty if it may.
func forbidden(imported string, layer int, home string) string {
	if within(imported, "github.com/gardener/gardener/pkg/gardenlet") {
		return "production code is independent of gardenlet"
	}
	directory, ours := strings.CutPrefix(imported, module+"/")
	if !ours {
		return ""
	}
	target, targetHome := layerOf(directory)
	switch {
	case within(directory, "test"):
		return "it is test code"
	case layer < 0:
		return ""
	case target < 0:
		return "it is not production code"
	case target > layer:
		return "it is of a higher layer"
	case target == layer && targetHome != home && layer != shellLayer:
		return "it is of the same layer"
	}
	return ""
}

// clockCalls finds uses of the clocks, whatever name the file imports them under.
func clockCalls(set *token.FileSet, file *ast.File) []string {
	names := map[string]string{}
	for _, i := range file.Imports {
		imported, _ := strconv.Unquote(i.Path.Value)
		if _, ok := clocks[imported]; !ok {
			continue
		}
		name := path.Base(imported)
		if i.Name != nil {
			name = i.Name.Name
		}
		names[name] = imported
	}
	var found []string
	if imported, ok := names["."]; ok {
		found = append(found, fmt.Sprintf("%s imports the names of %s: the package is pure", set.Position(file.Package).Filename, imported))
	}
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := selector.X.(*ast.Ident); ok && slices.Contains(clocks[names[x.Name]], selector.Sel.Name) {
			found = append(found, fmt.Sprintf("%s uses %s.%s: the package is pure, time is an argument", set.Position(n.Pos()), x.Name, selector.Sel.Name))
		}
		return true
	})
	return found
}

func TestViolations(t *testing.T) {
	own := func(p string) string { return "package x\nimport _ \"" + module + "/" + p + "\"" }
	imports := func(p string) string { return "package x\nimport _ \"" + p + "\"" }

	for _, tc := range []struct {
		name, file, source, want string
	}{
		{"a lower layer", "pkg/scope/a.go", own("pkg/hook"), ""},
		{"a much lower layer", "cmd/x/app/a.go", own("pkg/apis/guard/v1alpha1"), ""},
		{"a higher layer", "pkg/hook/a.go", own("pkg/scope"), "higher layer"},
		{"the shell from a pure package", "pkg/report/a.go", own("pkg/guard"), "higher layer"},
		{"the command from the shell", "pkg/guard/a.go", own("cmd/x/app"), "higher layer"},
		{"a sibling", "pkg/scope/a.go", own("pkg/record"), "same layer"},
		{"a package of the same directory", "pkg/apis/guard/validation/a.go", own("pkg/apis/guard/v1alpha1"), ""},
		{"a sibling in the shell", "pkg/controller/guard/a.go", own("pkg/shoot"), ""},
		{"a name that begins like a layer", "pkg/hooks/a.go", "package x", "in no layer"},
		{"test code from production code", "pkg/guard/a.go", own("test/bench"), "it is test code"},
		{"test code from a tool of the build", "hack/tool/a.go", own("test/bench"), "it is test code"},
		{"the chart from a tool of the build", "hack/tool/a.go", own("charts"), ""},
		{"the chart from the shell", "pkg/guard/a.go", own("charts"), "not production code"},
		{"test code from test code", "test/demo/a.go", own("test/bench"), ""},
		{"anything from a test", "pkg/hook/a_test.go", imports("k8s.io/client-go/rest"), ""},
		{"a tool of the build", "hack/tool/a.go", imports("os"), ""},
		{"gardenlet from the shell", "pkg/guard/a.go", imports("github.com/gardener/gardener/pkg/gardenlet/operation"), "independent of gardenlet"},
		{"gardenlet from a tool", "hack/tool/a.go", imports("github.com/gardener/gardener/pkg/gardenlet"), "independent of gardenlet"},
		{"gardenlet from the bench", "test/bench/a.go", imports("github.com/gardener/gardener/pkg/gardenlet/operation"), ""},
		{"gardenlet's API from the shell", "pkg/guard/a.go", imports("github.com/gardener/gardener/pkg/apis/core/v1beta1"), ""},
		{"a client in a pure package", "pkg/decide/a.go", imports("sigs.k8s.io/controller-runtime/pkg/client"), "pure"},
		{"a client in the shell", "pkg/apply/a.go", imports("sigs.k8s.io/controller-runtime/pkg/client"), ""},
		{"a context in a pure package", "pkg/hook/a.go", imports("context"), "pure"},
		{"a logger in a pure package", "pkg/report/a.go", imports("log/slog"), "pure"},
		{"the environment in a pure package", "pkg/phase/a.go", imports("os"), "pure"},
		{"a clock in a pure package", "pkg/backend/a.go", imports("k8s.io/utils/clock/testing"), "pure"},
		{"pointers in a pure package", "pkg/backend/a.go", imports("k8s.io/utils/ptr"), ""},
		{"times in a pure package", "pkg/backend/a.go", "package x\nimport \"time\"\nvar _ = time.Second\nfunc f(t time.Time) bool { return t.After(t) }", ""},
		{"the time in a pure package", "pkg/backend/a.go", "package x\nimport \"time\"\nvar _ = time.Now()", "a.go:3:9 uses time.Now"},
		{"the time by another name", "pkg/backend/a.go", "package x\nimport t \"time\"\nvar _ = t.Since", "uses t.Since"},
		{"the time in API types", "pkg/backend/a.go", "package x\nimport m \"k8s.io/apimachinery/pkg/apis/meta/v1\"\nvar _ = m.Now()", "uses m.Now"},
		{"the time without a name", "pkg/backend/a.go", "package x\nimport . \"time\"\nvar _ = Now()", "imports the names of time"},
		{"the time in the shell", "pkg/guard/a.go", "package x\nimport \"time\"\nvar _ = time.Now()", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			found := violations(g, tc.file, tc.source)
			if tc.want == "" {
				g.Expect(found).To(BeEmpty())
				return
			}
			g.Expect(found).To(ConsistOf(ContainSubstring(tc.want)))
		})
	}
}
