// SPDX-FileCopyrightText: 2026 The gardener-extension-shoot-hibernation-guard Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"

	"github.com/gardener-community/gardener-extension-shoot-hibernation-guard/pkg/access"
)

// ExpireTokens does to the kubeconfig secrets, Gardener's and the extension's own if there is one, what a sleep of 13 hours does:
// each holds a token that ended an hour ago, and its renewal is overdue. It is meant for a sleeping Shoot: a running
// gardener-resource-manager renews tokens within a second.
func (g *Gardenlet) ExpireTokens(ctx context.Context) error {
	for _, name := range []string{v1beta1constants.SecretNameGardener, v1beta1constants.SecretNameGardenerInternal, access.SecretName} {
		err := g.bench.ExpireToken(ctx, client.ObjectKey{Namespace: g.bench.Namespace, Name: name})
		if name == access.SecretName {
			err = client.IgnoreNotFound(err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ExpireToken is ExpireTokens for one Secret.
func (b *Bench) ExpireToken(ctx context.Context, name client.ObjectKey) error {
	secret, config, err := b.kubeconfig(ctx, name)
	if err != nil {
		return err
	}
	for _, auth := range config.AuthInfos {
		if auth.Token, err = expired(auth.Token, b.Shoot.keys().serviceTokens, 12*time.Hour, time.Now().Add(-time.Hour)); err != nil {
			return fmt.Errorf("failed to sign token for %s: %w", name, err)
		}
	}
	patch := client.MergeFromWithOptions(secret.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if secret.Data[kubernetes.KubeConfig], err = clientcmd.Write(*config); err != nil {
		return fmt.Errorf("failed to encode kubeconfig %s: %w", name, err)
	}
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, resourcesv1alpha1.ServiceAccountTokenRenewTimestamp, time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))
	if err := b.Seed.Client().Patch(ctx, secret, patch); err != nil {
		return fmt.Errorf("failed to patch secret %s: %w", name, err)
	}
	return nil
}

// TokenEnd is when the token in a Secret expires, or has.
func (b *Bench) TokenEnd(ctx context.Context, name client.ObjectKey) (time.Time, error) {
	_, config, err := b.kubeconfig(ctx, name)
	if err != nil {
		return time.Time{}, err
	}
	for _, auth := range config.AuthInfos {
		_, claims, err := decodeToken(auth.Token)
		if err != nil {
			return time.Time{}, fmt.Errorf("failed to read token of %s: %w", name, err)
		}
		if end, ok := claims["exp"].(float64); ok {
			return time.Unix(int64(end), 0), nil
		}
	}
	return time.Time{}, fmt.Errorf("failed to find the end of a token in %s", name)
}

func (b *Bench) kubeconfig(ctx context.Context, name client.ObjectKey) (*corev1.Secret, *clientcmdapi.Config, error) {
	secret := &corev1.Secret{}
	if err := b.Seed.Client().Get(ctx, name, secret); err != nil {
		return nil, nil, fmt.Errorf("failed to get secret %s: %w", name, err)
	}
	config, err := clientcmd.Load(secret.Data[kubernetes.KubeConfig])
	if err != nil {
		return nil, nil, fmt.Errorf("failed to decode kubeconfig %s: %w", name, err)
	}
	return secret, config, nil
}

// decodeToken returns the header of a JSON Web Token, encoded, and its claims.
func decodeToken(token string) (header string, claims map[string]any, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", nil, errors.New("it is no JSON Web Token")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(payload, &claims)
	}
	if err != nil {
		return "", nil, fmt.Errorf("failed to decode it: %w", err)
	}
	return parts[0], claims, nil
}

// expired is the token as it would be had it been issued so long before its end. The API server issues none that is over. key
// signed the token, which was made with ECDSA on the curve P-256.
func expired(token string, key []byte, validity time.Duration, end time.Time) (string, error) {
	header, claims, err := decodeToken(token)
	if err != nil {
		return "", err
	}
	begin := end.Add(-validity).Unix()
	claims["iat"], claims["nbf"], claims["exp"] = begin, begin, end.Unix()
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("failed to encode it: %w", err)
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(key)
	if err != nil {
		return "", fmt.Errorf("failed to parse key: %w", err)
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return "", fmt.Errorf("the key is a %T", parsed)
	}
	encoding := base64.RawURLEncoding
	signed := header + "." + encoding.EncodeToString(payload)
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, private, digest[:])
	if err != nil {
		return "", fmt.Errorf("failed to sign it: %w", err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signed + "." + encoding.EncodeToString(signature), nil
}
