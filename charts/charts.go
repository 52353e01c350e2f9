// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Package charts has the Helm chart of the extension.
package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io/fs"
)

//go:embed all:gardener-extension-shoot-hibernation-guard
var files embed.FS

// Archive is the chart as gardenlet and helm take it: a gzip-compressed tar file. The same files give the same bytes: names
// are sorted, and neither times nor owners are in it.
func Archive() ([]byte, error) {
	var archive bytes.Buffer
	compressor := gzip.NewWriter(&archive)
	writer := tar.NewWriter(compressor)
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		if err := writer.WriteHeader(&tar.Header{Name: path, Mode: 0o644, Size: int64(len(content))}); err != nil {
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
