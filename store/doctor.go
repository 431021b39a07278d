package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"golang.org/x/sys/unix"

	"holdfast/journal"
)

// Health is how a check came out.
type Health string

// The healths. Only Wrong keeps a server from doing what it promises.
const (
	Healthy Health = "ok"
	Warning Health = "warning"
	Wrong   Health = "wrong"
)

// Finding is what one check found, in words for who runs the server.
type Finding struct {
	Check  string
	Health Health
	Found  string
	Do     string // what they can do; "" if nothing needs to be done
}

// Diagnosis is what a doctor found of a state folder and a journal.
type Diagnosis struct {
	Findings []Finding
	// What follows is of a journal that could be read (Read).
	Read       bool
	Users      int
	Disabled   int
	SetupLinks int // that nobody has used
	Workspaces []SessionBrief
	KeyID      string   // of the key that credentials are sealed with; "": none was ever stored
	Sealed     []Sealed // the credentials, also those that were replaced or deleted and may still be in use
}

func (d *Diagnosis) add(check string, health Health, found, do string) {
	d.Findings = append(d.Findings, Finding{check, health, found, do})
}

// doctorTime bounds one question to the database.
const doctorTime = 10 * time.Second

// Diagnose looks at a state folder and a journal, also while they are served. It
// takes no lock, migrates nothing and writes nothing: what it opens it opens for
// reading. What it can't find out is a finding, too. look is asked for the shim of a
// call of this folder; nil: nobody can look.
func Diagnose(ctx context.Context, database, stateDir string, look func(*journal.Call) (ShimSeen, error)) *Diagnosis {
	d := &Diagnosis{}
	d.folder(stateDir)
	d.space("disk of the state folder", stateDir, false)
	d.hostClock(time.Now())
	doc := &doctor{Diagnosis: d, dir: stateDir, look: look}
	if IsPostgres(database) {
		doc.postgres(ctx, database)
	} else {
		doc.sqlite(ctx, database, stateDir)
	}
	return d
}

// folder checks the state folder, and who holds it.
func (d *Diagnosis) folder(dir string) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.add("state folder", Warning, dir+" isn't there yet", "the first start makes it; or name another one with --state")
		return
	case err != nil:
		d.add("state folder", Wrong, err.Error(), "make it readable for the server's user")
		return
	case !info.IsDir():
		d.add("state folder", Wrong, dir+" is no folder", "name another one with --state")
		return
	case unix.Access(dir, unix.R_OK|unix.W_OK|unix.X_OK) != nil:
		d.add("state folder", Wrong, dir+" can't be written", "give it to the user that the server runs as")
		return
	case info.Mode().Perm()&0o077 != 0:
		d.add("state folder", Warning, fmt.Sprintf("%s has the mode %#o: others may look into it", dir, info.Mode().Perm()), "chmod 700 "+dir)
	default:
		d.add("state folder", Healthy, fmt.Sprintf("%s, mode %#o", dir, info.Mode().Perm()), "")
	}
	d.add("server", Healthy, holderWords(filepath.Join(dir, "lock")), "")
}

// holderWords says who holds a lock, as the last holder wrote it down: to try
// the lock itself could keep a server from starting.
func holderWords(path string) string {
	b, err := os.ReadFile(path + ".holder")
	var h Holder
	if err != nil || json.Unmarshal(b, &h) != nil || h.PID == 0 {
		return "not served so far"
	}
	host, err := os.Hostname()
	who := fmt.Sprintf("pid %d on %s, since %s", h.PID, h.Host, h.Since.Format(time.RFC3339))
	switch {
	case dead(h):
		return "not served; the last was " + who
	case err != nil || h.Host != host:
		return "the last to serve it was " + who + "; whether that still runs can't be seen from here"
	}
	return "served by " + who
}

// space checks the file system under a folder, or under what there is of its path.
func (d *Diagnosis) space(check, dir string, sqlite bool) {
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	k := diskOf(dir)
	switch {
	case sqlite && k.network != "":
		d.add(check, Wrong, "a network file system ("+k.network+"): its locks and fsync can't be relied on, and a server refuses it", "put the journal on a local disk, or use Postgres")
		return
	case k.size == 0:
		d.add(check, Healthy, "what kind it is, and how much is free, can't be told on this platform", "")
		return
	}
	free := fmt.Sprintf("%.0f %% of %.1f GB free", 100*float64(k.free)/float64(k.size), float64(k.size)/1e9)
	switch {
	case k.free < k.size/20:
		d.add(check, Warning, free, "make room: when it is full nothing new is accepted")
	case sqlite && k.name != "":
		d.add(check, Warning, free+"; "+k.name+": "+k.why, "put the journal on a local disk or a volume, or use Postgres")
	default:
		d.add(check, Healthy, free, "")
	}
}

// hostClock checks that the host's clock can be the time.
func (d *Diagnosis) hostClock(now time.Time) {
	if y := now.UTC().Year(); y < 2024 || y > 2100 {
		d.add("clock", Wrong, "the host's clock says "+now.UTC().Format(time.RFC3339), "set it: entries get their time from the database's clock, which is this one on SQLite")
		return
	}
	d.add("clock", Healthy, "the host's says "+now.UTC().Format(time.RFC3339), "")
}

// doctor is a Diagnosis with the database that it is of.
type doctor struct {
	*Diagnosis
	s    *Store
	dir  string // the state folder
	look func(*journal.Call) (ShimSeen, error)
}

// open gives the journal in one reading pool, without a writer or a goroutine.
func (d *doctor) open(name, address string, db *sqlx.DB) {
	db.SetMaxOpenConns(2)
	d.s = &Store{url: address, r: db, w: db}
	d.s.d = dialect{name: name, clock: time.Now, skew: func() int64 { return 0 }}
}

func (d *doctor) close() {
	if err := d.s.r.Close(); err != nil {
		d.add("database", Warning, "closing it failed: "+err.Error(), "")
	}
}

func (d *doctor) sqlite(ctx context.Context, path, stateDir string) {
	dir := filepath.Dir(path)
	d.space("disk of the journal", dir, true)
	info, err := os.Stat(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			d.add("database", Warning, "there is no journal at "+path+" yet", "the first start makes it; or name another one with --database or --state")
		} else {
			d.add("database", Wrong, err.Error(), "make it readable for the server's user")
		}
		return
	}
	if filepath.Clean(dir) != filepath.Clean(stateDir) {
		d.add("journal's server", Healthy, holderWords(resolved(path)+".owner"), "")
	}
	if folder, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o077 != 0 && folder.Mode().Perm()&0o077 != 0 {
		d.add("journal's mode", Warning, fmt.Sprintf("%s has the mode %#o: others may read everything that was said and printed", path, info.Mode().Perm()), "chmod 600 "+path)
	}
	// Reading beside a log needs its files; where there is none nobody serves the
	// journal, and opening it as usual would make them.
	how := "mode=ro"
	if _, err := os.Stat(path + "-wal"); errors.Is(err, fs.ErrNotExist) {
		how = "immutable=1"
	}
	db, err := sqlx.Open("sqlite", sqliteURL(path)+"?"+how+"&_pragma=busy_timeout(2000)&_pragma=synchronous(FULL)&_pragma=query_only(1)")
	if err != nil {
		d.add("database", Wrong, err.Error(), "")
		return
	}
	d.open("sqlite", path, db)
	defer d.close()
	if !d.schema(ctx, fmt.Sprintf("SQLite, %.1f MB", float64(info.Size())/1e6)) {
		return
	}
	d.sqliteSettings(ctx)
	d.quickCheck(ctx)
	d.contents(ctx)
}

func resolved(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	return path
}

// ask reads one value, within a bounded time.
func (d *doctor) ask(ctx context.Context, into any, q string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	return d.s.r.GetContext(ctx, into, d.s.r.Rebind(q), args...)
}

// schema checks that the database answers and has this build's schema.
func (d *doctor) schema(ctx context.Context, what string) bool {
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	var one int
	if err := d.ask(ctx, &one, "SELECT 1"); err != nil {
		d.add("database", Wrong, "it can't be read: "+err.Error(), "restore a backup, or name another journal with --database")
		return false
	}
	switch err := d.s.checkSchema(ctx); {
	case errors.Is(err, ErrSchema):
		d.add("database", Wrong, what+"; "+err.Error(), "use the build that serves it, or run holdfast migrate while no server runs")
		return false
	case errors.Is(err, ErrNoJournal) && d.damaged(ctx):
		d.add("database", Wrong, what+"; it can't be read: "+err.Error(), "restore a backup")
		return false
	case errors.Is(err, ErrNoJournal):
		d.add("database", Warning, what+"; there is no journal in it yet", "the first start makes one")
		return false
	case err != nil:
		d.add("database", Wrong, what+"; "+err.Error(), "")
		return false
	}
	var version int64
	if err := d.ask(ctx, &version, "SELECT max(version_id) FROM goose_db_version WHERE "+d.s.isApplied()); err != nil {
		d.add("database", Wrong, what+"; "+err.Error(), "")
		return false
	}
	d.add("database", Healthy, fmt.Sprintf("%s, schema %d, this build's", what, version), "")
	return true
}

// damaged tells a database that can't be read at all from one without a journal.
func (d *doctor) damaged(ctx context.Context) bool {
	q := "SELECT count(*) FROM sqlite_master"
	if !d.s.d.sqlite() {
		q = "SELECT count(*) FROM pg_catalog.pg_class"
	}
	var n int
	return d.ask(ctx, &n, q) != nil
}

func (d *doctor) sqliteSettings(ctx context.Context) {
	var mode string
	var sync int
	if err := errors.Join(d.ask(ctx, &mode, "PRAGMA journal_mode"), d.ask(ctx, &sync, "PRAGMA synchronous")); err != nil {
		d.add("durability", Wrong, err.Error(), "")
		return
	}
	if walInHeader(d.s.url) { // opened as it can't change, SQLite says delete of any file
		mode = "wal"
	}
	switch {
	case sync != 2:
		d.add("durability", Wrong, fmt.Sprintf("journal_mode=%s, synchronous=%d: an acknowledged prompt could be lost with the power", mode, sync), "this SQLite was built without FULL; use another build")
	case mode != "wal":
		d.add("durability", Warning, "journal_mode="+mode+", synchronous=FULL", "nothing: the next start sets WAL; a copy by holdfast backup has this until then")
	default:
		d.add("durability", Healthy, "journal_mode=wal, synchronous=FULL", "")
	}
}

// walInHeader tells whether a SQLite file itself says that it is used with a log.
func walInHeader(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	var b [1]byte
	_, err = f.ReadAt(b[:], 18) // the version that writing needs
	return errors.Join(err, f.Close()) == nil && b[0] == 2
}

// quickCheck has SQLite look through its pages, for a while.
func (d *doctor) quickCheck(ctx context.Context) {
	var said string
	switch err := d.ask(ctx, &said, "PRAGMA quick_check(1)"); {
	case errors.Is(err, context.DeadlineExceeded):
		d.add("integrity", Healthy, fmt.Sprintf("nothing was found in %s, which was not enough for all of it", doctorTime), "holdfast verify reads all")
	case err != nil:
		d.add("integrity", Wrong, err.Error(), "restore a backup")
	case said != "ok":
		d.add("integrity", Wrong, said, "stop the server, keep the file, restore a backup")
	default:
		d.add("integrity", Healthy, "quick_check found nothing; holdfast verify looks at what the entries say", "")
	}
}

func (d *doctor) postgres(ctx context.Context, address string) {
	if _, err := url.Parse(address); err != nil { // which would repeat it, password and all
		d.add("database", Wrong, "its address isn't one", "write it as postgres://USER@HOST:PORT/DATABASE, with % escapes for what isn't a letter or a digit")
		return
	}
	d.open("postgres", address, sqlx.NewDb(sql.OpenDB(connector{address, readerIdle}), "postgres"))
	defer d.close()
	var version, name string
	if err := d.ask(ctx, &version, "SHOW server_version"); err != nil {
		d.add("database", Wrong, "it can't be reached: "+err.Error(), "look at its address and its password file, and whether it runs")
		return
	}
	if err := d.ask(ctx, &name, "SELECT current_database()"); err != nil {
		name = "?"
	}
	version, _, _ = strings.Cut(version, " ")
	ready := d.schema(ctx, "PostgreSQL "+version+", database "+name)
	d.postgresSettings(ctx)
	d.compareClocks(ctx)
	d.listens(ctx, address)
	if ready {
		d.contents(ctx)
	}
}

func (d *doctor) postgresSettings(ctx context.Context) {
	want := []struct{ name, value string }{{"synchronous_commit", "on"}, {"fsync", "on"}, {"full_page_writes", "on"}, {"server_encoding", "UTF8"}}
	var said, bad []string
	for _, w := range want {
		var got string
		if err := d.ask(ctx, &got, "SELECT current_setting(?)", w.name); err != nil {
			got = err.Error()
		}
		said = append(said, w.name+"="+got)
		if stronger := w.name == "synchronous_commit" && got == "remote_apply"; got != w.value && !stronger {
			bad = append(bad, w.name+" must be "+w.value)
		}
	}
	if len(bad) > 0 {
		d.add("durability", Wrong, strings.Join(said, ", ")+": an acknowledged prompt could be lost", strings.Join(bad, "; "))
		return
	}
	d.add("durability", Healthy, strings.Join(said, ", "), "")
}

// clockApart is how far two clocks may be apart before people are confused by it.
const clockApart = 2 * time.Second

func (d *doctor) compareClocks(ctx context.Context) {
	began := time.Now()
	var ms int64
	if err := d.ask(ctx, &ms, "SELECT "+d.s.d.now(), d.s.d.nowArg()); err != nil {
		d.add("database's clock", Wrong, err.Error(), "")
		return
	}
	took := time.Since(began)
	apart := time.UnixMilli(ms).Sub(began.Add(took / 2)).Round(time.Millisecond)
	if apart.Abs() > clockApart+took/2 {
		d.add("database's clock", Warning, fmt.Sprintf("%s from this host's", apart), "set them by NTP: leases go by the database's alone, but logs and pages will not agree")
		return
	}
	d.add("database's clock", Healthy, fmt.Sprintf("%s from this host's, within %s", apart, took.Round(time.Millisecond)), "")
}

// contents reads what the other checks need to know of the journal.
func (d *doctor) contents(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	var latest sql.NullInt64
	var now int64
	err := d.s.read(ctx, func(q querier) error {
		k := q.dialect()
		var err error
		if d.KeyID, _, err = credentialState(ctx, q); err != nil {
			return err
		}
		return errors.Join(
			q.get(ctx, &d.Users, "SELECT count(*) FROM users"),
			q.get(ctx, &d.Disabled, "SELECT count(*) FROM users WHERE disabled = 1"),
			q.get(ctx, &d.SetupLinks, "SELECT count(*) FROM sign_in_link WHERE user_id IS NULL AND used_at IS NULL AND expires_at > "+k.now(), k.nowArg()),
			q.get(ctx, &latest, "SELECT max(updated_at) FROM session"),
			q.get(ctx, &now, "SELECT "+k.now(), k.nowArg()),
			q.all(ctx, &d.Sealed, "SELECT "+credentialColumns+", sealed FROM credential ORDER BY id"),
			q.all(ctx, &d.Workspaces, "SELECT DISTINCT '' AS id, '' AS agent, workspace, workspace_id FROM session WHERE base <> 'closed' ORDER BY workspace LIMIT 200"),
		)
	})
	if err != nil {
		d.add("journal", Wrong, err.Error(), "")
		return
	}
	d.Read = true
	d.shims(ctx)
	if ahead := time.Duration(latest.Int64-now) * time.Millisecond; ahead > time.Minute {
		d.add("journal's time", Warning, fmt.Sprintf("the newest entry is %s ahead of the database's clock: that was set back", ahead.Round(time.Second)), "set the clock; until then claims of before seem to hold longer")
	}
}
