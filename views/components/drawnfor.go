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

type postedKey struct{}

// AnswersForm marks a context whose page answers a form: its address doesn't show it again.
func AnswersForm(ctx context.Context) context.Context {
	return context.WithValue(ctx, postedKey{}, true)
}

// Posted reports whether a page answers a form.
func Posted(ctx context.Context) bool {
	posted, _ := ctx.Value(postedKey{}).(bool)
	return posted
}
