package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/e2e/rig"
)

// counted is a script that prints so many numbered lines, some of them twice in a
// row, in three parts between which it meets the test.
func counted(up, gate *rig.Gate, lines int) (script []string, printed string) {
	var out strings.Builder
	for part := range 3 {
		for i := part * lines / 3; i < (part+1)*lines/3; i++ {
			fmt.Fprintf(&out, "line %d\nthe same\nthe same\n", i)
		}
		script = append(script,
			fmt.Sprintf("i=%d; while [ $i -lt %d ]; do echo line $i; echo the same; echo the same; i=$((i+1)); done", part*lines/3, (part+1)*lines/3),
			up.Tell("$$"), gate.Read())
	}
	return script, out.String()
}

// The server is killed three times while one command runs. It is adopted each
// time; what it printed is in the journal once, byte for byte.
// proves REC-10 CAL-5 JRN-5 LEA-11 COO-2 REC-11
func TestE2E_ACommandOutlivesItsServer(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		script, printed := counted(up, gate, 1332) // 3,996 lines
		w.script("counted", script...)
		id := s.mission(steps(effect("begun")+"; ./counted; echo end; "+effect("ended"), effect("next")))
		pid := ""
		for n := range 3 {
			if p := up.Wait(); pid != "" && p != pid {
				t.Errorf("it is process %s, and was %s", p, pid)
			} else {
				pid = p
			}
			s.kill9()
			if n != 1 {
				gate.Open() // it goes on while nobody is there
			}
			s.restart()
			if n == 1 { // the others may be killed before they have looked
				s.untilKind(id, "call.adopted", 1)
				gate.Open()
			}
		}
		s.untilQuiet(id, "ready")
		for _, name := range []string{"begun", "ended", "next"} {
			w.wantEffect(name, 1)
		}
		j := s.events(id)
		if got := j.output(s.calls(id)[0].ID); got != printed+"end\n" {
			t.Errorf("%d bytes of output are journalled, want %d; they differ at %d", len(got), len(printed)+4, differ(got, printed+"end\n"))
		}
		wantCounts(t, j, map[string]int{"call.unknown": 0, "session.blocked": 0, "turn.started": 1, "turn.ended": 1, "call.dispatched": 2})
	})
}

func differ(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// A command that ends while no server is there is settled from its record, with
// its exit code and all that it printed.
// proves CAL-5 REC-4
func TestE2E_ACommandEndsWhileNoServerRuns(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		id := s.mission("```sh on-error=continue\necho before; " + up.Tell("$$") + "; " + gate.Read() + "; echo after; exit 7\n```\n" + steps(effect("next")))
		pid := atoi(t, up.Wait())
		s.kill9()
		gate.Open()
		waitGone(t, pid)
		s.waitShimsGone() // it writes its record after that
		s.restart()
		s.untilQuiet(id, "ready")
		one := s.calls(id)[0]
		if one.State != "failed" || one.ExitCode == nil || *one.ExitCode != 7 {
			t.Errorf("the call is %+v, want failed with 7", one)
		}
		j := s.events(id)
		if got := j.output(one.ID); got != "before\nafter\n" {
			t.Errorf("the output is %q", got)
		}
		wantCounts(t, j, map[string]int{"call.unknown": 0, "call.adopted": 0, "call.dispatched": 2, "turn.started": 1})
		w.wantEffect("next", 1)
	})
}

// A command's own time limit is kept while no server is there.
// proves COO-5 CAL-5
func TestE2E_ATimeLimitIsKeptWhileNoServerRuns(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		up := w.gate("up")
		id := s.mission("```sh timeout=2s\n" + up.Tell("$$") + "; sleep 3600\n```\n")
		pid := atoi(t, up.Wait())
		s.kill9()
		waitGone(t, pid)
		s.waitShimsGone()
		s.restart()
		s.untilQuiet(id, "failed")
		wantCounts(t, s.events(id), map[string]int{"call.unknown": 0, "call.adopted": 0})
		if j := s.events(id); j.of("call.settled")[0].str("reason") != "timeout" {
			t.Errorf("it was settled as %s", j.of("call.settled").dump())
		}
	})
}

// Server and shims are lost together: nobody knows what became of the command.
// proves CAL-4 CAL-7 REC-4
func TestE2E_APowerCutLeavesItUnknown(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		id := s.mission(steps(effect("begun") + "; echo seen; " + up.Tell("$$") + "; " + gate.Read() + "; " + effect("ended")))
		up.Wait()
		s.until(id, "its output is journalled", func(j journal) bool { return j.count("call.output") > 0 })
		s.powerCut()
		gate.Open()
		s.restart()
		s.untilQuiet(id, "uncertain")
		wantCounts(t, s.events(id), map[string]int{"call.unknown": 1, "call.adopted": 0, "call.dispatched": 1})
		w.wantEffect("ended", 0)
	})
}

// A shim that is killed alone takes its command along, and what that detached.
// proves CAL-4 CAL-7 COO-7
func TestE2E_AKilledShimTakesItsCommandAlong(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		w.script("child", up.Tell("$$"), gate.Read(), effect("leftover"))
		w.script("parent", "setsid ./child & "+up.Tell("$$")+"; wait")
		id := s.mission(steps("./parent"))
		pids := []int{atoi(t, up.Wait()), atoi(t, up.Wait())}
		s.killShims()
		s.untilQuiet(id, "uncertain")
		for _, pid := range pids {
			waitGone(t, pid)
		}
		gate.Open()
		w.wantEffect("leftover", 0)
		wantCounts(t, s.events(id), map[string]int{"call.unknown": 1, "call.dispatched": 1})
	})
}

// A person stops the turn while the server is dead, between its death and the
// next claim: the command hears of it.
// proves COO-4 REC-6 COO-2 COO-7
func TestE2E_AnInterruptReachesAnAdoptedCommand(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		w.script("detached", "nohup setsid ./child > /dev/null 2>&1 &")
		w.script("child", up.Tell("$$"), gate.Read(), effect("leftover"))
		id := s.mission(steps("./detached; "+up.Tell("$$")+"; "+gate.Read(), effect("next")))
		pids := []int{atoi(t, up.Wait()), atoi(t, up.Wait())}
		s.kill9()
		s.restart()
		s.untilKind(id, "call.adopted", 1)
		s.interrupt(id)
		s.untilQuiet(id, "stopped")
		for _, pid := range pids {
			waitGone(t, pid)
		}
		j := s.events(id)
		wantCounts(t, j, map[string]int{"call.unknown": 0, "turn.ended": 1})
		if c := s.calls(id)[0]; c.State != "cancelled" {
			t.Errorf("the call is %s, want cancelled: its end was seen", c.State)
		}
		w.wantEffect("leftover", 0)
		s.resume(id).want(t, http.StatusAccepted)
		s.untilQuiet(id, "ready")
		w.wantEffect("next", 1)
	})
}

// A host that comes back to a session which another has recovered writes nothing
// to it: it ends the command, and says what it saw beside the unknown call.
// proves LEA-12 REC-4 CAL-5 LEA-4
func TestE2E_AHostThatComesBackTestifies(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		id := s.mission(steps(up.Tell("$$")+"; "+gate.Read()+"; "+effect("ended"), effect("next")))
		pid := atoi(t, up.Wait())
		s.kill9()
		other := w.serve(as("2"), flags(quick...))
		other.untilQuiet(id, "uncertain")
		before := other.events(id)
		s.restart()
		waitGone(t, pid)
		j := s.untilKind(id, "call.evidence", 1)
		for _, e := range j[len(before):] {
			if e.Kind != "call.evidence" || e.ExecutionID != nil {
				t.Errorf("the host that came back wrote %s", e.Kind)
			}
		}
		s.resolve(s.calls(id)[0].ID, "did_not_happen", "stay").want(t, http.StatusOK)
		s.untilQuiet(id, "stopped")
		w.wantEffect("ended", 0)
		wantCounts(t, s.events(id), map[string]int{"call.evidence": 1})
	})
}

// The folder of a shim is removed once its call has settled.
func TestE2E_FoldersOfShimsAreSwept(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		id := s.mission(steps("echo one", "echo two"))
		s.untilQuiet(id, "ready")
		shims := filepath.Join(s.state, "shims")
		eventually(t, "the folders are gone", func() bool {
			left, err := os.ReadDir(shims)
			return err == nil && len(left) == 0
		})
		if n := w.db.Count(t, w.sql(), "SELECT count(*) FROM spool"); n != 0 {
			t.Errorf("%d rows of spools are left", n)
		}
		info, err := os.Stat(shims)
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("the folder of shims: %v %v", info.Mode(), err)
		}
	})
}

// What a step leaves in the background ends with it, also what has detached
// itself; then its shim is gone, too.
// proves COO-7
func TestE2E_NothingIsLeftOfACommand(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		up := w.gate("up")
		w.script("child", up.Tell("$$"), "sleep 1000")
		w.script("parent", "./child & setsid ./child & (./child &)")
		id := s.mission(steps("./parent"))
		var pids []int
		for range 3 {
			pids = append(pids, atoi(t, up.Wait()))
		}
		s.untilQuiet(id, "ready")
		for _, pid := range pids {
			waitGone(t, pid)
		}
		s.waitShimsGone()
	})
}

// Many commands are adopted at once.
// proves REC-10 LEA-11
func TestE2E_ManyCommandsAreAdopted(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		const many = 20
		s := w.serve(flags("--max-running", fmt.Sprint(many)), flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		var ids []string
		for i := range many {
			ids = append(ids, s.mission(steps(up.Tell("$$")+"; "+gate.Read()+"; "+effect(fmt.Sprint("e", i)))))
		}
		for range many {
			up.Wait()
		}
		s.kill9()
		s.restart()
		began := time.Now()
		for _, id := range ids {
			s.untilKind(id, "call.adopted", 1)
		}
		t.Logf("%d commands were adopted within %s of the start", many, time.Since(began))
		for range many {
			gate.Open()
		}
		for i, id := range ids {
			s.untilQuiet(id, "ready")
			w.wantEffect(fmt.Sprint("e", i), 1)
		}
	})
}
