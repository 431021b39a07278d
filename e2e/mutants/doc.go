// Package mutants breaks the product on purpose, one rule at a time, and sees to
// it that a test notices.
//
// Each patch here is a unified diff under a head:
//
//	Rules: LEA-4
//	Test: ./store TestAppend_Fence
//	Check: yes
//
//	A paused worker whose session was taken over writes on.
//
//	--- a/store/append.go
//	+++ b/store/append.go
//	…
//
// Test names a package and a regular expression for -run; it must fail once the
// patch is applied, and the code must still build. Check marks the ten that every
// check runs (make mutants); make soak runs all. Database: postgres is for a
// mutant that SQLite can't show; all others run on SQLite alone.
//
// A patch is applied to copies that the compiler reads in the files' place (go
// build -overlay): the tree itself is never changed. A patch that doesn't apply
// any more fails: the code it broke was changed, so it is to be written anew.
package mutants
