// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package charts has the Helm charts of the project.
package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

const (
	// Extension is the directory of the chart that gardenlet installs on seeds.
	Extension = "gardener-extension-shoot-hibernation-guard"
	// AdmissionRuntime is that of the admission component in the runtime cluster of the garden.
	AdmissionRuntime = "gardener-extension-shoot-hibernation-guard-admission/charts/runtime"
	// AdmissionApplication is that of its rights in the (virtual) garden cluster.
	AdmissionApplication = "gardener-extension-shoot-hibernation-guard-admission/charts/application"
)

// Files are the charts, each in its directory.
//
//go:embed all:gardener-extension-shoot-hibernation-guard all:gardener-extension-shoot-hibernation-guard-admission
var Files embed.FS

// Archive is the chart in a directory of Files as Gardener and helm take it: a gzip-compressed tar file. The same files give
// the same bytes: names are sorted, and neither times nor owners are in it.
func Archive(directory string) ([]byte, error) {
	var archive bytes.Buffer
	compressor := gzip.NewWriter(&archive)
	writer := tar.NewWriter(compressor)
	err := fs.WalkDir(Files, directory, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := Files.ReadFile(name)
		if err != nil {
			return err
		}
		inArchive := strings.TrimPrefix(name, strings.TrimSuffix(directory, path.Base(directory))) // helm wants one directory
		if err := writer.WriteHeader(&tar.Header{Name: inArchive, Mode: 0o644, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err = writer.Write(content)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("failed to pack the chart: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("failed to close the chart's archive: %w", err)
	}
	if err := compressor.Close(); err != nil {
		return nil, fmt.Errorf("failed to compress the chart: %w", err)
	}
	return archive.Bytes(), nil
}
