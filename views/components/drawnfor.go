package components

import "context"

type viewerKey struct{}

// DrawnFor marks a context with whom pages are drawn for: each form then says so,
// and isn't taken from somebody who has signed in on the same browser since (OWN-1).
func DrawnFor(ctx context.Context, viewer string) context.Context {
	return context.WithValue(ctx, viewerKey{}, viewer)
}

func drawnFor(ctx context.Context) string {
	id, _ := ctx.Value(viewerKey{}).(string)
	return id
}
