// Package storetest runs one test on every database that the journal supports,
// and makes what such a test needs.
//
//	storetest.Each(t, func(t *testing.T, s *store.Store) {
//		owner := storetest.MustUser(t, s)
//		…
//	})
//
// gives the subtests sqlite and postgres, each on a fresh database of its own:
// a file in the test's folder, and one on the server of TEST_POSTGRES_URL (see
// postgres.go for its name). Without that variable there is no subtest
// postgres; nothing is skipped.
//
// Time is the store's: s.Skew moves it, so no test waits for a lease to end.
// Every store that is opened here is checked when its test ends: CheckInvariants.
package storetest
