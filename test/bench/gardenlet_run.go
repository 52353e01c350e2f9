// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/client/kubernetes/clientmap"
	"github.com/gardener/gardener/pkg/client/kubernetes/clientmap/keys"
	"github.com/gardener/gardener/pkg/controllerutils"
	"github.com/gardener/gardener/pkg/gardenlet/operation"
	botanistpkg "github.com/gardener/gardener/pkg/gardenlet/operation/botanist"
	"github.com/gardener/gardener/pkg/gardenlet/operation/garden"
	seedpkg "github.com/gardener/gardener/pkg/gardenlet/operation/seed"
	shootpkg "github.com/gardener/gardener/pkg/gardenlet/operation/shoot"
	"github.com/gardener/gardener/pkg/utils"
	"github.com/gardener/gardener/pkg/utils/gardener/tokenrequest"
	secretsutils "github.com/gardener/gardener/pkg/utils/secrets"
	fakesecretsmanager "github.com/gardener/gardener/pkg/utils/secrets/manager/fake"
)

// gardenletUser is gardenlet's name on the seed, and its user agent on both clusters: on the Shoot it shares its user,
// system:serviceaccount:kube-system:gardener-internal, with the extensions.
const gardenletUser = "gardenlet"

// connect makes the clients of the seed and starts what runs in the background. The caller holds flows.
func (g *Gardenlet) connect(ctx context.Context) error {
	if g.closed {
		return errors.New("failed to start a flow: gardenlet is closed")
	}
	if g.seed != nil {
		return ctx.Err()
	}
	config := g.bench.Seed.ConfigFor(gardenletUser, "system:masters")
	config.UserAgent = gardenletUser
	seed, err := kubernetes.NewWithConfig(
		kubernetes.WithRESTConfig(config),
		kubernetes.WithClientOptions(client.Options{Scheme: kubernetes.SeedScheme}),
		kubernetes.WithDisabledCachedClient(),
	)
	if err != nil {
		return fmt.Errorf("failed to connect to seed: %w", err)
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	if err := g.startSeed(background); err != nil {
		stop()
		g.background.Wait()
		return err
	}
	g.seed, g.stop = seed, stop
	g.shootClients = clientmap.NewGenericClientMap(&gardenletShootClients{seed: seed.Client(), namespace: g.bench.Namespace}, g.log, clock.RealClock{})
	return nil
}

// gardenletShootClients makes clients as ShootClientSetFactory does, but with a user agent of their own.
type gardenletShootClients struct {
	seed      client.Client
	namespace string
}

func (f *gardenletShootClients) secret(ctx context.Context) (*corev1.Secret, string, error) {
	secret := &corev1.Secret{}
	if err := f.seed.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: v1beta1constants.SecretNameGardenerInternal}, secret); err != nil {
		return nil, "", err
	}
	return secret, utils.ComputeSHA256Hex(secret.Data[kubernetes.KubeConfig]), nil
}

func (f *gardenletShootClients) CalculateClientSetHash(ctx context.Context, _ clientmap.ClientSetKey) (string, error) {
	_, hash, err := f.secret(ctx)
	return hash, err
}

func (f *gardenletShootClients) NewClientSet(ctx context.Context, _ clientmap.ClientSetKey) (kubernetes.Interface, string, error) {
	secret, hash, err := f.secret(ctx)
	if err != nil {
		return nil, "", err
	}
	if populated, err := tokenrequest.IsTokenPopulated(secret); err != nil {
		return nil, "", err
	} else if !populated {
		return nil, "", errors.New("token for shoot kubeconfig was not populated yet")
	}
	config, err := kubernetes.RESTConfigFromKubeconfig(secret.Data[kubernetes.KubeConfig])
	if err != nil {
		return nil, "", err
	}
	config.UserAgent, config.QPS = gardenletUser, -1
	set, err := kubernetes.NewWithConfig(
		kubernetes.WithRESTConfig(config),
		kubernetes.WithClientOptions(client.Options{Scheme: kubernetes.ShootScheme}),
		kubernetes.WithDisabledCachedClient(),
	)
	return set, hash, err
}

// newRun prepares the objects of Gardener's code for one flow, as operation.Builder and botanist.New do.
func (g *Gardenlet) newRun(ctx context.Context, op gardencorev1beta1.LastOperationType) (*gardenletRun, error) {
	info := g.Shoot()
	networks, err := shootpkg.ToNetworks(info, false)
	if err != nil {
		return nil, err
	}
	version, err := semver.NewVersion(info.Spec.Kubernetes.Version)
	if err != nil {
		return nil, fmt.Errorf("failed to parse Kubernetes version: %w", err)
	}
	shoot := &shootpkg.Shoot{
		CloudProfile:             newCloudProfile(),
		ControlPlaneNamespace:    g.bench.Namespace,
		RuntimeKubernetesVersion: version, KubernetesVersion: version,
		InternalClusterDomain: new("guard.bench.internal"),
		BackupEntryName:       g.bench.Namespace,
		HibernationEnabled:    v1beta1helper.HibernationIsEnabled(info),
		Networks:              networks,
	}
	shoot.SetInfo(info)
	if shoot.IsRestorePhase() {
		state, err := g.getShootState(ctx)
		if err != nil || state == nil {
			return nil, errors.Join(errors.New("failed to restore without ShootState"), err)
		}
		shoot.SetShootState(state)
	}
	seed := &seedpkg.Seed{}
	seed.SetInfo(newSeed(*info.Spec.SeedName))
	run := &gardenletRun{gardenlet: g, operation: op, Botanist: &botanistpkg.Botanist{Operation: &operation.Operation{
		Clock: clock.RealClock{}, Logger: g.log,
		Garden:       &garden.Garden{Project: &gardencorev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: gardenProject}}},
		GardenClient: g.garden, SeedClientSet: g.seed, ShootClientMap: g.shootClients,
		Seed: seed, Shoot: shoot,
		SecretsManager:      fakesecretsmanager.New(g.seed.Client(), g.bench.Namespace),
		SeedNamespaceObject: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: g.bench.Namespace}},
	}}}
	return run, run.addComponents(ctx)
}

// layAuthority lays the certificate of the Shoot's authority where GardenerAccess looks for it; between a rotation and
// the next start of the API server, the old and the new one, as Gardener does.
func (r *gardenletRun) layAuthority(ctx context.Context) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: v1beta1constants.SecretNameCACluster, Namespace: r.Shoot.ControlPlaneNamespace}}
	_, err := controllerutils.GetAndCreateOrMergePatch(ctx, r.SeedClientSet.Client(), secret, func() error {
		bundle := r.gardenlet.bench.Shoot.authorities()
		secret.Data = map[string][]byte{
			secretsutils.DataKeyCertificateCA:     bundle,
			secretsutils.DataKeyCertificateBundle: bundle,
		}
		return nil
	})
	return err
}

// authorities are the authority of now and, after RotateCertificates, that of the next start.
func (c *ControlPlane) authorities() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	bundle := slices.Clone(c.pki.ca.pem)
	if c.next != nil {
		bundle = append(bundle, c.next.ca.pem...)
	}
	return bundle
}

func (r *gardenletRun) forgetShootClient() error {
	return r.ShootClientMap.InvalidateClient(keys.ForShoot(r.Shoot.GetInfo()))
}

// deployWorkers tells the machines what Gardener's Worker would: all of them, or none for a hibernated Shoot.
func (r *gardenletRun) deployWorkers(context.Context) error {
	count := 0
	for _, pool := range r.Shoot.GetInfo().Spec.Provider.Workers {
		count += int(pool.Minimum)
	}
	r.gardenlet.workers.scale(int(r.Shoot.GetReplicas(int32(count)))) //nolint:gosec // a handful
	return nil
}

// waitWorkers waits as long as gardenlet does for a Worker (worker.DefaultTimeout); a Worker is ready when its machines
// are gone, or each of them has a Ready node.
func (r *gardenletRun) waitWorkers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	return r.gardenlet.workers.wait(ctx)
}

// waitTunnel waits as long as gardenlet does. Gardener forwards a port to the pod; here its readiness says as much.
func (r *gardenletRun) waitTunnel(ctx context.Context) error {
	return eventually(ctx, 15*time.Minute, func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := r.ShootClientSet.Client().List(ctx, pods, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{v1beta1constants.LabelApp: v1beta1constants.VPNTunnel}); err != nil {
			return err
		}
		for _, pod := range pods.Items {
			for _, condition := range pod.Status.Conditions {
				if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
					return nil
				}
			}
		}
		return fmt.Errorf("no %s pod is ready", v1beta1constants.VPNTunnel)
	})
}

func (g *Gardenlet) deleteCluster(ctx context.Context) error {
	cluster := &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: g.bench.Namespace}}
	if err := g.seed.Client().Delete(ctx, cluster); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("failed to delete Cluster: %w", err)
	}
	return nil
}

// host is the Shoot's API server as Gardener's code wants it, without scheme.
func (r *gardenletRun) host() string {
	return strings.TrimPrefix(r.gardenlet.bench.Shoot.Host(), "https://")
}

// deploymentReplicas is nil if there is no such Deployment.
func (r *gardenletRun) deploymentReplicas(ctx context.Context, name string) (*int32, error) {
	deployment := gardenletDeployment(r.Shoot.ControlPlaneNamespace, name)
	if err := r.SeedClientSet.Client().Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, err
	}
	if deployment.DeletionTimestamp != nil || deployment.Spec.Replicas == nil {
		return nil, nil
	}
	return deployment.Spec.Replicas, nil
}
