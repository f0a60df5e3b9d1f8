package translation

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"

	"liqonet.io/liqonet/internal/records"
)

// Bounds of what is asked of the API server.
const (
	reviewTimeout = 5 * time.Second
	reviewsAtOnce = 16
	// remembered is how long a decision holds: as long as in the API server's own aggregated servers.
	remembered   = 10 * time.Second
	maxDecisions = 4096
)

// gate lets in who may ask. It has the API server say whose a token is (TokenReview) and whether that one may get
// "translations" of group liqonet.io in liqonet's namespace, by the name of the peer that is asked about
// (LocalSubjectAccessReview, which needs no cluster-wide right). There are no such objects: the right is all there
// is of them.
//
// Only tokens for records.TranslationAudience count. Whoever runs this service, or passes for it, can do nothing
// else with what clients send.
type gate struct {
	client    kubernetes.Interface
	namespace string
	slots     chan struct{} // one for each review on its way

	decisions *cache.LRUExpireCache // by question: the refusal, nil where it was admitted
}

// question is a token, of which only a hash is kept, and the peer that is asked about; "": all.
type question struct {
	token [sha256.Size]byte
	peer  string
}

func newGate(client kubernetes.Interface, namespace string) *gate {
	return &gate{
		client: client, namespace: namespace,
		slots: make(chan struct{}, reviewsAtOnce), decisions: cache.NewLRUExpireCache(maxDecisions),
	}
}

// admit reports why a request about a peer ("": about all) is not let in. A refusal is a *Problem; any other
// error says that the API server could not be asked.
func (g *gate) admit(r *http.Request, peer string) error {
	token, err := bearer(r)
	if err != nil {
		return err
	}
	q := question{sha256.Sum256([]byte(token)), peer}
	if d, ok := g.decisions.Get(q); ok {
		return d.(*Problem).refusal()
	}
	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()
	select {
	case g.slots <- struct{}{}:
		defer func() { <-g.slots }()
	case <-ctx.Done():
		return errors.New("ask the API server who may ask: too many requests at once")
	}
	if d, ok := g.decisions.Get(q); ok { // a request that came at the same time was faster
		return d.(*Problem).refusal()
	}
	err = g.review(ctx, token, peer)
	if p, refused := errors.AsType[*Problem](err); err == nil || refused {
		g.decisions.Add(q, p, remembered)
	}
	return err
}

// bearer returns the token of a request (RFC 6750, 2.1).
func bearer(r *http.Request) (string, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", refusef(http.StatusUnauthorized, "unauthenticated", "no token: want a header Authorization: Bearer TOKEN")
	}
	return token, nil
}

// review asks the API server.
func (g *gate) review(ctx context.Context, token, peer string) error {
	asked := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{
		Token: token, Audiences: []string{records.TranslationAudience},
	}}
	who, err := g.client.AuthenticationV1().TokenReviews().Create(ctx, asked, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("ask the API server whose the token is: %w", err)
	}
	// An authenticator that knows of no audiences returns none: its word is about the API server's own tokens.
	if !who.Status.Authenticated || !slices.Contains(who.Status.Audiences, records.TranslationAudience) {
		return refusef(http.StatusUnauthorized, "unauthenticated", "the token is not valid for audience %s", records.TranslationAudience)
	}
	user := who.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	may := &authorizationv1.LocalSubjectAccessReview{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: g.namespace, Verb: "get", Group: records.TranslationGroup, Resource: records.TranslationResource, Name: peer,
			},
		},
	}
	answer, err := g.client.AuthorizationV1().LocalSubjectAccessReviews(g.namespace).Create(ctx, may, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("ask the API server what %q may do: %w", user.Username, err)
	}
	if !answer.Status.Allowed {
		p := refusef(http.StatusForbidden, "forbidden", "%q may not get %s.%s in namespace %s", user.Username,
			records.TranslationResource, records.TranslationGroup, g.namespace)
		p.Hint = fmt.Sprintf("kubectl -n %s create rolebinding NAME --role=%s --serviceaccount=NAMESPACE:NAME", g.namespace, records.TranslationClientName)
		return p
	}
	return nil
}
