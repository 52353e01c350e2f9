// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

// Command gardener-extension-shoot-hibernation-guard-admission is the webhook of the garden that checks the providerConfig.
package main

import (
	"os"

	"github.com/gardener/gardener/cmd/utils"
	"github.com/gardener/gardener/pkg/logger"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/cmd/gardener-extension-shoot-hibernation-guard-admission/app"
)

func main() {
	utils.DeduplicateWarnings()
	logf.SetLogger(logger.MustNewZapLogger(logger.InfoLevel, logger.FormatJSON))
	if err := app.NewCommand().ExecuteContext(signals.SetupSignalHandler()); err != nil {
		logf.Log.Error(err, "Admission ended")
		os.Exit(1)
	}
}
