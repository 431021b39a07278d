package handlers

import "testing"

func TestLoneSurrogate(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		`{"a":"x"}`: false, `{"a":"\ud83d\ude00"}`: false, `{"a":"\\ud800"}`: false, `{"a":"\u00e9\n"}`: false,
		`{"a":"\ud800"}`: true, `{"a":"\udc00"}`: true, `{"a":"\ud800\ud800"}`: true, `{"a":"\ud800x"}`: true, `{"a":"\ud83d\n"}`: true, `{"a":"\\\ud800"}`: true, `"\ud8`: false, `"\ud800`: true,
	} {
		if got := loneSurrogate([]byte(body)); got != want {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
}
