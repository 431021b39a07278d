package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// realFolder has the agents from npm, at the versions that its lock pins.
const realFolder = "agents"

// lockEntry is what is read of a package in package-lock.json.
type lockEntry struct {
	Version   string `json:"version"`
	Integrity string `json:"integrity"`
	Resolved  string `json:"resolved"`
	Optional  bool   `json:"optional"`
}

// unhashed are the packages of opencode for platforms that the suites don't run on.
// Its lock names them, since npm ci refuses a lock without what a package may ask
// for; their hashes couldn't be read.
var unhashed = []string{
	"darwin-arm64", "darwin-x64", "darwin-x64-baseline", "linux-arm64", "linux-arm64-musl",
	"linux-x64-baseline-musl", "linux-x64-musl", "windows-arm64", "windows-x64", "windows-x64-baseline",
}

// What npm installs here is what was looked at: each package has a hash, and none
// says where it is to come from.
func TestLocks(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"..", realFolder} {
		raw, err := os.ReadFile(filepath.Join(folder, "package-lock.json"))
		var lock struct {
			Packages map[string]lockEntry `json:"packages"`
		}
		if err != nil || json.Unmarshal(raw, &lock) != nil {
			t.Fatalf("the lock of %s: %v", folder, err)
		}
		if len(lock.Packages) < 2 {
			t.Fatalf("the lock of %s has no packages", folder)
		}
		for path, e := range lock.Packages {
			switch {
			case path == "": // the folder itself
			case e.Resolved != "":
				t.Errorf("%s says where it comes from; npm install --omit-lockfile-registry-resolved", path)
			case !strings.HasPrefix(e.Integrity, "sha512-") && !mayLackHash(path, e):
				t.Errorf("%s %s has no hash", path, e.Version)
			}
		}
	}
}

func mayLackHash(path string, e lockEntry) bool {
	for _, platform := range unhashed {
		if path == "node_modules/opencode-"+platform {
			return e.Optional
		}
	}
	return false
}
