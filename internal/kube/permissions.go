package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Permission is one operation that the user must be allowed to do. Without Namespace it is cluster-wide, without Name
// it is for objects of any name; Version and selectors are not used.
type Permission authorizationv1.ResourceAttributes

// String returns a text such as "create daemonsets.apps in namespace liqonet".
func (p Permission) String() string {
	text := p.Verb + " " + p.Resource
	if p.Group != "" {
		text += "." + p.Group
	}
	if p.Subresource != "" {
		text += "/" + p.Subresource
	}
	if p.Name != "" {
		text += " " + p.Name
	}
	if p.Namespace != "" {
		return text + " in namespace " + p.Namespace
	}
	return text
}

// Permissions returns the permissions that the rules of a role grant in a namespace; "" for the whole cluster.
func Permissions(rules []rbacv1.PolicyRule, namespace string) []Permission {
	var all []Permission
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, verb := range rule.Verbs {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, name := range names {
						plural, sub, _ := strings.Cut(resource, "/")
						all = append(all, Permission{Verb: verb, Group: group, Resource: plural, Subresource: sub, Namespace: namespace, Name: name})
					}
				}
			}
		}
	}
	return all
}

// DiscoveryPermissions are the permissions that Discover requires.
func DiscoveryPermissions() []Permission {
	return []Permission{
		{Verb: "get", Resource: "namespaces", Name: metav1.NamespaceSystem},
		{Verb: "list", Resource: "nodes"},
		{Verb: "list", Resource: "pods"},
	}
}

// ErrUnreadable is why objects were not read if the user lacks a permission.
var ErrUnreadable = errors.New("you are not allowed to read them")

// NotAllowed reports whether an error is that the user lacks a permission.
func NotAllowed(err error) bool {
	_, lacks := errors.AsType[*PermissionError](err)
	return lacks || apierrors.IsForbidden(err) || errors.Is(err, ErrUnreadable)
}

// Unread returns the error for which objects were not read, in short.
func Unread(err error) error {
	if NotAllowed(err) {
		return ErrUnreadable
	}
	return err
}

// PermissionError lists all permissions that the user lacks.
type PermissionError struct {
	Context string
	Missing []Permission
}

func (e *PermissionError) Error() string {
	lines := make([]string, len(e.Missing))
	for i, p := range e.Missing {
		lines[i] = p.String()
	}
	return fmt.Sprintf("check permissions in cluster %q: not allowed: %s", e.Context, strings.Join(lines, "; "))
}

// Hint suggests how an administrator can grant the permissions.
func (e *PermissionError) Hint() string {
	return "an administrator gives the rights: see liqoctl network role --help; kubectl auth can-i --list --context " + ShellWord(e.Context) + " shows yours"
}

// CheckPermissions checks each permission at the API server, in parallel. If some are missing, the error is a
// *PermissionError with all of them, in the order of the arguments.
func (c *Cluster) CheckPermissions(ctx context.Context, permissions []Permission) error {
	allowed := make([]bool, len(permissions))
	err := Each(ctx, permissions, func(ctx context.Context, i int, p Permission) (err error) {
		allowed[i], err = c.allowed(ctx, p)
		return err
	})
	if err != nil {
		return fmt.Errorf("check permissions in cluster %q: %w", c.Context, err)
	}
	refused := &PermissionError{Context: c.Context}
	for i, p := range permissions {
		if !allowed[i] {
			refused.Missing = append(refused.Missing, p)
		}
	}
	if len(refused.Missing) > 0 {
		return refused
	}
	return nil
}

func (c *Cluster) allowed(ctx context.Context, p Permission) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: (*authorizationv1.ResourceAttributes)(&p),
	}}
	answer, err := c.Kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("%s: %w", p, err)
	}
	return answer.Status.Allowed, nil
}
